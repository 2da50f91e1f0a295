"""Panels that show runs of other trainers."""
