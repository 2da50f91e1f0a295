"""Language models: their tasks (plain Python and NumPy) and, in the modules that import torch, the model itself."""
