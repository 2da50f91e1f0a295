"""Export of pictures, tables, films and pages, from the window and from the command line."""
