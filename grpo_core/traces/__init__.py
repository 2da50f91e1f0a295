"""Runs of other trainers: importers, one file a format, and recorders that run beside a trainer."""
