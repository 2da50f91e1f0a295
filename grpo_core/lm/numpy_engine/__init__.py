"""The character transformer in NumPy, for where torch is not installed."""
