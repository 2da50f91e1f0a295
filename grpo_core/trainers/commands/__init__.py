"""The commands that read runs of other trainers."""
