"""The panel Home: recent runs and shipped examples as small pictures, and ways to begin."""
