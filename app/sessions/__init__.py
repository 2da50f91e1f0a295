"""Reading and writing session files beside the window."""
