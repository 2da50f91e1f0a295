"""The pictures of the lessons, one file each over a common base, and the table of their names."""
