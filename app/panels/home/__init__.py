"""The Home panel: recent runs and shipped examples as small pictures, and ways to begin."""
