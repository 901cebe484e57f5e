"""Learners: each turns a problem into a layout; one file each, none knows another."""
