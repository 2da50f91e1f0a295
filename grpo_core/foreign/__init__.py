"""What strangers wrote, read by a process of its own that may die: sources, prompts, sessions, models' folders."""
