"""Files of the program, preferences of the user, and how the windows were arranged."""
