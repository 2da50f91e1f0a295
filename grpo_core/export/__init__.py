"""Exports of a run: plain tables, and one update as a NumPy script that recomputes its loss."""
