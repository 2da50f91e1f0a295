"""Recorders that a training script imports to leave a trace of every update. Each file stands alone."""

from pathlib import Path

RECORDER = "trl_recorder.py"
"""Name under which the recorder for TRL lies beside a script that trains."""
RECORDER_SOURCE = Path(__file__).parent / "trl.py"
