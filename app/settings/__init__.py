"""The program's files, the user's preferences, and the arrangement of the windows."""
