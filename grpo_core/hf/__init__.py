"""Models from a folder of the user's: looked at, loaded and trained. Only the files that say so import torch."""
