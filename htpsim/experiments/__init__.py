"""Runs, comparisons, and what they are held to."""
