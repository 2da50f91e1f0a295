"""What happens when something goes wrong: reports, safe mode, message bars."""
