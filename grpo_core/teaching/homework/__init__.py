"""Homework: one small file per student, which is parsed defensively and whose numbers are recomputed."""
