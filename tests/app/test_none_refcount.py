"""PySide6 6.12.0 on Python below 3.12 loses a reference to None at every call that returns it (PYSIDE-3474)."""

from __future__ import annotations

import gc
import sys

import numpy as np
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.plotting.axis import Scale
from app.plotting.plot import Plot
from app.plotting.pyramid import Pyramid

FRAMES = 2000


def test_two_thousand_frames_cost_no_reference_to_none(qtbot: QtBot, qapp: QApplication) -> None:
    plot = Plot("History", Scale(label="update", low=1, whole=True), Scale())
    qtbot.addWidget(plot)
    plot.add_curve("reward", "reward", "reward", Pyramid(np.arange(50.0)))
    plot.resize(200, 120)
    plot.show()
    qapp.processEvents()
    gc.collect()  # what earlier tests left would go during the frames and take its references to None along
    before = sys.getrefcount(None)
    for frame in range(FRAMES):
        plot.set_cursor(float(frame % 50))
        plot.refresh()
        plot.viewport().repaint()
    # A loss would be thousands; caches may come and go by some dozens.
    assert sys.getrefcount(None) > before - 100
