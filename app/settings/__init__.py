"""Where the program keeps its files, what the user prefers, and how the windows were arranged."""
