"""A run or a lesson as one self-contained HTML file."""
