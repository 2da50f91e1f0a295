"""A run or a lesson as one HTML file that stands alone."""
