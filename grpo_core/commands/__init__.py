"""Commands of the command line, one file per command. ``cli.py`` registers them."""
