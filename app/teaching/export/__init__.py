"""Handouts, pages, films and checks of lessons, and homework on the command line."""
