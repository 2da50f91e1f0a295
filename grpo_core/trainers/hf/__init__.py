"""Models from a user's folder: inspecting, loading and training them. Only some of the modules import torch."""
