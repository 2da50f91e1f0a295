"""Recorders that a training script imports to leave a trace of every update. Each file stands alone."""
