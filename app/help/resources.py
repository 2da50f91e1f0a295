"""Where the shipped texts lie, in the source tree and in a packaged program alike."""

from __future__ import annotations

from pathlib import Path

RESOURCES = Path(__file__).resolve().parents[2] / "resources"
