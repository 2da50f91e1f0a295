"""The formulas shipped as drawings are the ones that would be drawn now, and a new window needs no others."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.formula import render
from app.formula.objective_terms import objective_terms
from app.formula.term_strip import TermStrip
from grpo_core.config import Objective
from tools.make_formulas import PATH, made, pieces

FIRST_WINDOW = """
import sys
from pathlib import Path
from PySide6.QtWidgets import QApplication
from app.application import Application
from app.settings.paths import find_paths
from app.settings.preferences import Preferences
from grpo_core.config import language_settings

app = QApplication([])
program = Application(app, find_paths({"GRPO_LAB_HOME": sys.argv[1]}), Preferences())
program.run_manager._load = lambda run: None  # the model, which would take torch's seconds to be there
program.window.show()
for settings in (None, language_settings()):
    if settings is not None:
        program.run_manager.new_run(settings)
        program.window.show_layout("Language model")
    for _ in range(20):
        program.workspace._on_tick()
        app.processEvents()
print("ziamath" in sys.modules)
program.shutdown.close()
while not program.window.may_close:  # the run's process may only have begun to start
    app.processEvents()
"""


@pytest.fixture
def shipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A copy of the shipped file, which the program reads instead."""
    path = tmp_path / PATH.name
    path.write_text(PATH.read_text("utf-8"), "utf-8")
    monkeypatch.setattr(render, "resource", lambda name: tmp_path / name)
    render.shipped_drawings.cache_clear()
    yield path
    render.shipped_drawings.cache_clear()


def test_the_shipped_drawings_are_those_that_would_be_drawn_now() -> None:
    assert render.shipped_drawings() == made(), "run python -m tools.make_formulas"


def test_every_preset_is_shipped_drawn(shipped: Path) -> None:
    assert set(pieces()) == set(render.shipped_drawings())


@pytest.mark.parametrize("kept", ["", "{}", "[]", '{"digest": "0", "drawings": {"L": "<svg/>"}}', '{"drawings": 1}'])
def test_a_damaged_file_is_not_believed(shipped: Path, kept: str) -> None:
    shipped.write_text(kept, "utf-8")
    assert render.shipped_drawings() == {}
    assert render.picture("L", 18.0, "#000000") is not None, "it is drawn now"


def test_a_drawing_that_was_changed_is_not_believed(shipped: Path) -> None:
    whole = json.loads(shipped.read_text("utf-8"))
    whole["drawings"]["L"] = whole["drawings"]["W"]
    shipped.write_text(json.dumps(whole), "utf-8")
    assert render.shipped_drawings() == {}


def test_a_first_window_is_drawn_without_the_library_that_draws_formulas(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", FIRST_WINDOW, str(tmp_path)],
        env=os.environ | {"QT_QPA_PLATFORM": "offscreen"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["False"]


@pytest.mark.parametrize(("beta", "waits"), [(Objective().beta, False), (0.0417, True)])
def test_a_strip_waits_for_what_is_not_shipped(qapp: object, beta: float, waits: bool) -> None:
    strip = TermStrip(late=True)
    assert strip.waits
    strip.set_terms(objective_terms(Objective(beta=beta)))
    assert strip.waits == waits
    strip.deleteLater()


def test_size_and_colour_are_given_to_the_same_drawing() -> None:
    small, large = (render.picture("L", pixels, "#ff0000") for pixels in (18.0, 36.0))
    assert small is not None and large is not None
    assert (large.size.width(), large.ascent) == pytest.approx((2 * small.size.width(), 2 * small.ascent))
    image = small.image
    inks = {image.pixelColor(x, y).name() for x in range(image.width()) for y in range(image.height())}
    assert "#ff0000" in inks and render.INK not in inks
