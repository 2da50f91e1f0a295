"""Handling of failures: unexpected exceptions, log files, Ctrl-C, safe mode."""
