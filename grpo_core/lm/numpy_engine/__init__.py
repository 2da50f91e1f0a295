"""The character transformer in NumPy, which computes it on the CPU."""
