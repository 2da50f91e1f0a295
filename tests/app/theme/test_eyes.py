"""Screenshots as seen with other kinds of colour vision: neighbouring elements stay distinct, and never by hue
alone.
"""

from __future__ import annotations

import numpy as np
import pytest
from PySide6.QtGui import QImage

from app.panels.step_detail import StepDetailPanel
from app.panels.training_history import TrainingHistoryPanel
from app.theme.tokens import THEMES
from tests.app.conftest import Driver
from tests.app.theme.test_theme import APART, EYES, TOGETHER, XYZ

pytestmark = pytest.mark.one_window


def pixels(driver: Driver) -> np.ndarray:
    """Return the window's pixels (H, W, 3), 0 to 255."""
    driver.settle()
    image = driver.program.window.grab().toImage().convertToFormat(QImage.Format.Format_RGB888)
    rows = np.frombuffer(image.constBits(), np.uint8).reshape(image.height(), image.bytesPerLine())
    return rows[:, : 3 * image.width()].reshape(image.height(), image.width(), 3).copy()


def as_seen(picture: np.ndarray, eye: str) -> np.ndarray:
    """Return the CIE Lab values (H, W, 3) of a picture as ``eye`` sees it."""
    rgb = picture / 255
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    xyz = np.clip(linear @ EYES[eye].T, 0, 1) @ XYZ.T / np.array([0.95047, 1.0, 1.08883])
    f = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.stack([116 * f[..., 1] - 16, 500 * (f[..., 0] - f[..., 1]), 200 * (f[..., 1] - f[..., 2])], axis=-1)


@pytest.mark.parametrize(
    "theme", ["light", *(pytest.param(name, marks=pytest.mark.long) for name in THEMES if name != "light")]
)
def test_every_eye_tells_apart_what_a_screenshot_shows(driver: Driver, theme: str) -> None:
    driver.run(8)
    driver.program.look.set(theme)
    picture = pixels(driver)
    there = {}
    for meaning in {name for pair in TOGETHER for name in pair}:
        colour = THEMES[theme].colour(meaning)
        mask = (picture == [colour.red(), colour.green(), colour.blue()]).all(-1)
        if mask.sum() > 5:
            there[meaning] = mask
    assert {"policy", "push_down", "reward", "kl", "entropy"} <= set(there)
    for eye in EYES:
        lab = as_seen(picture, eye)
        mean = {meaning: lab[mask].mean(0) for meaning, mask in there.items()}
        for one, other in TOGETHER:
            if one in there and other in there:
                assert np.linalg.norm(mean[one] - mean[other]) >= APART, (eye, one, other)


def test_without_any_colour_signs_lines_and_fillings_still_tell(driver: Driver) -> None:
    """Without hue, each meaning is told apart by a symbol in the table, or by a line style or a name at a curve."""
    driver.run(8)
    step = driver.program.workspace.view.step
    assert step.advantage is not None
    detail = driver.program.window.panels["step_detail"]
    assert isinstance(detail, StepDetailPanel)
    table = detail.table.table
    place = next(n for n, column in enumerate(table.columns) if column.key == "advantage")
    shown = [str(table.index(row, place).data()) for row in range(table.rowCount())]
    for row, text in enumerate(shown):
        own = float(step.advantage[row])
        assert text.startswith("▲" if own > 0 else "▼"), (text, own)
    history = driver.program.window.panels["training_history"]
    assert isinstance(history, TrainingHistoryPanel)
    for box in history.choice.boxes.values():
        box.setChecked(True)
    driver.settle()
    assert len(history.charts) == 3
    for chart in history.charts:
        drawn = [curve for curve in chart.curves if curve.isVisible()]
        told = {(curve.opts["pen"].style(), curve.label) for curve in drawn}
        assert len(told) == len(drawn) > 1, "a line style, or the name at the end of the line"
