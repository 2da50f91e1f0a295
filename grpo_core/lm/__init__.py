"""The language model: its tasks (plain Python and NumPy) and, in the modules that import torch, the model itself."""
