"""The loop that trains a run: commands in, finished updates and reports out. It knows no window and no thread."""
