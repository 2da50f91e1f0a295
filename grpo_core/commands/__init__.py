"""Commands of the command line, one file a command. ``cli.py`` is the table of them."""
