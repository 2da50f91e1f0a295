"""Exports of a run: plain tables, and one update as a NumPy script that computes its loss again."""
