"""Controllers that carry out commands, one subject per file.

Each declares the few parts of the program that it uses.
"""
