"""Reads the lines of runs: checks their quality, compares two files of lines, and writes the pages of results."""
