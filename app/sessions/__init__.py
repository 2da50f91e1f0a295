"""Reading and writing of session files in the background."""
