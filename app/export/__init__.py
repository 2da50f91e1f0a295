"""Getting pictures and tables out of the program, from the window and from the command line."""
