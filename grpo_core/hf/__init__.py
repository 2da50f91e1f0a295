"""Models from a user's folder: inspected, loaded and trained. Only some of the modules import torch."""
