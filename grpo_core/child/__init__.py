"""Child processes of the program: starting, messages, limits and termination. Messages are JSON and bytes."""
