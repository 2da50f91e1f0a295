"""Recorders: one file each that a training script imports, standing alone beside it, to leave a trace of every update."""
