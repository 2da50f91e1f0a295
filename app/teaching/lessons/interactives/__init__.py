"""The interactive pictures of the lessons, one file each, with a common base class and a table of their names."""
