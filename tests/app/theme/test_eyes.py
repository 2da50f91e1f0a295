"""Screenshots as seen with other kinds of colour vision: neighbouring elements stay distinct, and never by hue
alone.
"""

from __future__ import annotations

import numpy as np
import pytest
from PySide6.QtGui import QImage

from app.panel_registry import STEP_DETAIL, TRAINING_HISTORY
from app.theme.tokens import THEMES
from tests.app.conftest import Driver
from tests.app.theme.test_theme import APART, EYES, TOGETHER, as_seen

pytestmark = pytest.mark.one_window


def pixels(driver: Driver) -> np.ndarray:
    """Return the window's pixels (H, W, 3), 0 to 255."""
    driver.settle()
    image = driver.program.window.grab().toImage().convertToFormat(QImage.Format.Format_RGB888)
    rows = np.frombuffer(image.constBits(), np.uint8).reshape(image.height(), image.bytesPerLine())
    return rows[:, : 3 * image.width()].reshape(image.height(), image.width(), 3).copy()


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
        lab = as_seen(picture / 255, eye)
        mean = {meaning: lab[mask].mean(0) for meaning, mask in there.items()}
        for one, other in TOGETHER:
            if one in there and other in there:
                assert np.linalg.norm(mean[one] - mean[other]) >= APART, (eye, one, other)


def test_without_any_colour_signs_lines_and_fillings_still_tell(driver: Driver) -> None:
    """Without hue, each meaning is told apart by a symbol in the table, or by a line style or a name at a curve."""
    driver.run(8)
    step = driver.program.workspace.view.step
    assert step.advantage is not None
    table = driver.program.window.panels.of(STEP_DETAIL).table.table
    place = next(n for n, column in enumerate(table.columns) if column.key == "advantage")
    shown = [str(table.index(row, place).data()) for row in range(table.rowCount())]
    for row, text in enumerate(shown):
        own = float(step.advantage[row])
        assert text.startswith("▲" if own > 0 else "▼"), (text, own)
    history = driver.program.window.panels.of(TRAINING_HISTORY)
    for box in history.choice.boxes.values():
        box.setChecked(True)
    driver.settle()
    assert len(history.charts) == 3
    for chart in history.charts:
        drawn = [curve for curve in chart.curves if curve.isVisible()]
        told = {(curve.opts["pen"].style(), curve.label) for curve in drawn}
        assert len(told) == len(drawn) > 1, "a line style, or the name at the end of the line"
