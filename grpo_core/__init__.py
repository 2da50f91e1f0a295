"""GRPO Lab's core: the loss, the learners, the record. No Qt; importing it imports NumPy and array-api-compat only."""

__version__ = "0.1.0"
