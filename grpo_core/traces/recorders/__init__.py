"""Recorders that a training script imports to write a trace of every update. Each file is self-contained."""

from pathlib import Path

RECORDER = "trl_recorder.py"
"""File name of the recorder for TRL next to a training script."""
RECORDER_SOURCE = Path(__file__).parent / "trl.py"
