"""What happens when something goes wrong: unexpected exceptions, log files, Ctrl-C, safe mode."""
