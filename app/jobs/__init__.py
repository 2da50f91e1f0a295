"""Jobs computed beside the window: their processes, shared where several ask for the same."""
