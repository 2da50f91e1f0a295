"""Foreign files, read by a process of its own that may die: sources, prompts, sessions, models' folders."""
