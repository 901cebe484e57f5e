"""Measurements of Hedgerow: each suite prints JSON lines on stdout and progress on stderr."""
