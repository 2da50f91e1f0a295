"""The pictures of the lessons: one file each over one base, and the table that names them."""
