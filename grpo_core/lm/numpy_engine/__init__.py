"""The NumPy engine of the character transformer, used on the CPU."""
