"""Home: the last runs and the shipped examples as small pictures, and the ways to begin."""
