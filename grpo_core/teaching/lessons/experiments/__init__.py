"""Experiments that are only run by lessons."""
