"""The check box that makes the race and the sweep use JAX."""

from __future__ import annotations

from PySide6.QtWidgets import QCheckBox

from app.theme.labels import plain_tip
from grpo_core.text import tr


def fast_box() -> QCheckBox:
    """Return a new, unchecked check box."""
    box = QCheckBox(tr("JAX"))
    box.setAccessibleName(tr("Compute with JAX"))
    box.setToolTip(
        plain_tip(
            tr(
                "Compiled by JAX (pip install grpo-lab[fast]): equal to NumPy except for rounding, which "
                "the result reports. Compiling takes seconds; it pays off for many thousands of runs."
            )
        )
    )
    return box
