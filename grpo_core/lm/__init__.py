"""Language models: their tasks, and the model itself in NumPy and in torch."""
