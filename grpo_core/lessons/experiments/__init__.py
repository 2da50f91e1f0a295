"""Experiments that only lessons run."""
