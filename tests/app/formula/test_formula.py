"""Formulas: drawn if possible, always readable as text, with live values that do not move the layout."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import unicodedata
from collections.abc import Iterator

import numpy as np
import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QColor, QImage
from PySide6.QtWidgets import QVBoxLayout, QWidget
from pytestqt.qtbot import QtBot

from app.formula import render
from app.formula.formula_label import SHRINK_TO, FormulaLabel, breakings
from app.formula.objective_terms import objective_terms
from app.formula.plain import plain_text, spoken_formula
from app.formula.term_strip import TermStrip
from app.theme.tokens import DARK, LIGHT, Theme
from grpo_core.config import PRESETS, Objective

ADVANTAGE = r"A = \frac{R - \mathrm{mean}(R)}{\mathrm{std}(R) + \delta}"
VALUES = {"ratio": "1.039", "advantage": "0.750", "clipped": "1.039", "kl": "0.0123"}


@pytest.fixture
def nothing_kept() -> Iterator[None]:
    render.picture.cache_clear()
    yield
    render.picture.cache_clear()


def grey(widget: QWidget, ground: QColor) -> np.ndarray:
    """Return the greyscale image of the widget on the background ``ground``, (height, width), 0 to 255."""
    image = QImage(widget.size(), QImage.Format.Format_RGB32)
    image.fill(ground)
    widget.render(image, renderFlags=QWidget.RenderFlag.DrawChildren)
    pixels = np.frombuffer(image.constBits(), np.uint8).reshape(image.height(), image.width(), 4)
    return pixels[..., :3].mean(axis=-1)


@pytest.mark.parametrize(("theme", "scale"), [(LIGHT, 1.0), (LIGHT, 2.0), (DARK, 1.0), (DARK, 2.0)])
def test_ink_is_dark_on_light_and_light_on_dark(qtbot: QtBot, theme: Theme, scale: float) -> None:
    label = FormulaLabel()
    qtbot.addWidget(label)
    label.show_latex(ADVANTAGE, theme, scale)
    label.resize(label.sizeHint())
    pixels = grey(label, theme.colour("ground"))
    inked = pixels > 180 if theme.dark else pixels < 90
    assert 0.01 < inked.mean() < 0.4
    assert label.accessibleName() == "A = (R − mean(R)) / (std(R) + δ)"


def test_a_formula_is_drawn_once_and_kept(qtbot: QtBot, nothing_kept: None) -> None:
    first = render.picture(ADVANTAGE, 16.0, "#000000", 1.0)
    assert first is not None
    assert render.picture(ADVANTAGE, 16.0, "#000000", 1.0) is first
    sharp = render.picture(ADVANTAGE, 16.0, "#000000", 2.0)
    assert sharp is not None
    assert sharp.size == first.size
    assert sharp.image.width() == pytest.approx(2 * first.image.width(), abs=1)


@pytest.mark.parametrize("latex", [r"\frac{a", r"\bogus{", r"a}{"])
def test_a_formula_that_cannot_be_drawn_is_shown_as_text(qtbot: QtBot, latex: str) -> None:
    label = FormulaLabel()
    qtbot.addWidget(label)
    label.show_latex("", LIGHT, 1.0)
    assert label.drawn is None
    label.show_latex(latex, LIGHT, 1.0)
    assert label.drawn is None
    label.resize(label.sizeHint())
    assert grey(label, QColor("white")).min() < 90


def test_a_formula_without_room_shrinks_and_then_wraps_as_text(qtbot: QtBot) -> None:
    label = FormulaLabel()
    qtbot.addWidget(label)
    label.show_latex(ADVANTAGE, LIGHT, 1.0)
    wide = label.sizeHint()
    assert label.heightForWidth(round(wide.width() * 0.7)) < wide.height()
    label.resize(60, label.heightForWidth(60))
    assert label.lines(60) == () and label.heightForWidth(60) > wide.height()
    assert grey(label, QColor("white")).min() < 90


@pytest.mark.parametrize(
    ("latex", "width", "rows"),
    [
        (
            r"H = -\left(0.5 \cdot (-2.5) + 0.25 \cdot (-2.53) + \cdots + 0.25 \cdot (-2.44)\right) = 2.28",
            230,
            [
                r"H = -(0.5 \cdot (-2.5) + 0.25 \cdot (-2.53)",
                r"{} + \cdots + 0.25 \cdot (-2.44)) = 2.28",
            ],
        ),
        (
            r"p = \frac{0.1 \cdot e^{-0.3}}{0.1 \cdot e^{-0.3} + 0.2 \cdot e^{-0.6} + 0.3 \cdot e^{0.9}} = 0.5",
            130,
            [
                r"p = 0.1 \cdot e^{-0.3} \,/\, (0.1 \cdot e^{-0.3}",
                r"{} + 0.2 \cdot e^{-0.6} + 0.3 \cdot e^{0.9}) = 0.5",
            ],
        ),
    ],
)
def test_a_long_formula_is_broken_before_an_operator_and_stays_typeset(
    qtbot: QtBot, latex: str, width: int, rows: list[str]
) -> None:
    assert rows in breakings(latex, 4)
    label = FormulaLabel()
    qtbot.addWidget(label)
    label.show_latex(latex, LIGHT, 1.0)
    assert label.sizeHint().width() > width / SHRINK_TO
    lines = label.lines(width)
    assert len(lines) > 1 and max(line.size.width() for line in lines) * SHRINK_TO <= width
    label.resize(width, label.heightForWidth(width))
    ink = (grey(label, QColor("white")) < 128).any(axis=1)
    gaps = np.flatnonzero(np.diff(ink.astype(int)) == -1)
    assert len(gaps) >= len(lines) - 1, "white between the lines"


@pytest.mark.parametrize("name", sorted(PRESETS))
def test_no_breaking_loses_a_sign_of_a_formula(name: str) -> None:
    def signs(latex: str) -> str:
        return "".join(sorted(re.sub(r"\\(left|right|,)|[\s{}()\[\]]", "", latex)))

    latex = "".join(term.latex for term in objective_terms(PRESETS[name].objective))
    broken = list(breakings(f"J = 1 + {latex}", 3))
    assert broken and {signs("".join(rows)) for rows in broken} == {signs(f"J = 1 + {latex}")}


def test_a_layout_leaves_room_for_the_second_line(qtbot: QtBot) -> None:
    whole, label = QWidget(), FormulaLabel()
    column = QVBoxLayout(whole)
    column.addWidget(label)
    column.addStretch(1)
    qtbot.addWidget(whole)
    whole.resize(200, 400)
    whole.show()
    label.show_latex("L = " + " + ".join(["0.06298"] * 8), LIGHT, 1.0)
    qtbot.waitUntil(lambda: label.height() >= label.heightForWidth(label.width()) > label.sizeHint().height())


def test_formulas_are_drawn_without_a_home_folder() -> None:
    script = (
        "import pathlib\n"
        "def lost(): raise RuntimeError('Could not determine home directory.')\n"
        "real = pathlib.Path.home\n"
        "import os\n"
        "pathlib.Path.home = classmethod(lambda cls: real() if os.environ.get('HOME') else lost())\n"
        "from PySide6.QtGui import QGuiApplication\n"
        "app = QGuiApplication([])\n"
        "from app.formula.render import picture\n"
        "assert picture('r^{7}', 16.0, '#000000') is not None\n"
        "assert 'HOME' not in os.environ\n"
    )
    environment = {name: value for name, value in os.environ.items() if name not in ("HOME", "USERPROFILE")}
    done = subprocess.run(
        [sys.executable, "-c", script],
        env=environment | {"QT_QPA_PLATFORM": "offscreen"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("latex", "text"),
    [
        (r"\pi_{\theta}(a) \le e^{d} - d - 1", "π_θ(a) ≤ e^d − d − 1"),
        (r"\mathrm{KL}(\pi\|\pi_\mathrm{ref})", "KL(π‖π_ref)"),
        (r"\left[ \min(r A,\, \tfrac{1}{2}) \right]", "[ min(r A, 1 / 2) ]"),
        (r"R_i - \bar{R}_{-i} \over \hat m", "R_i − R bar _−i over m hat"),
        (r"\bar r = \frac{1}{G} \sum_i r_i", "r bar = 1 / G Σ_i r_i"),
    ],
)
def test_a_formula_can_be_read_aloud(latex: str, text: str) -> None:
    assert spoken_formula(plain_text(latex)) == text
    assert not unicodedata.combining(plain_text(latex)[0])


@pytest.mark.parametrize("preset", PRESETS)
def test_every_presets_objective_can_be_drawn(qtbot: QtBot, preset: str) -> None:
    terms = objective_terms(PRESETS[preset].objective)
    assert all(render.picture(term.latex, 18.0, "#000000", 1.0) is not None for term in terms)
    keys = {term.key for term in terms}
    assert {"loss", "weight"} <= keys
    assert ("kl" in keys) == (PRESETS[preset].objective.beta != 0 and PRESETS[preset].objective.kl_in == "loss")


def strip_of(qtbot: QtBot, objective: Objective) -> TermStrip:
    strip = TermStrip(objective_terms(objective))
    qtbot.addWidget(strip)
    strip.set_values(VALUES)
    return strip


def test_each_term_tells_its_name_its_value_and_that_it_was_chosen(qtbot: QtBot) -> None:
    strip = strip_of(qtbot, Objective())
    strip.resize(strip.sizeHint())
    strip.show()
    ratio = next(button for button in strip.buttons if button.term.key == "ratio")
    assert ratio.accessibleName() == "ratio r = 1.039"
    with qtbot.waitSignal(strip.term_activated) as caught:
        qtbot.mouseDClick(ratio, Qt.MouseButton.LeftButton)
    assert caught.args == ["ratio"]
    with qtbot.waitSignal(strip.term_activated) as caught:
        qtbot.keyClick(ratio, Qt.Key.Key_Space)
    assert caught.args == ["ratio"]
    assert all(button.focusPolicy() is Qt.FocusPolicy.NoFocus for button in strip.buttons if not button.term.key)


@pytest.mark.parametrize("scale", [1.0, 2.0])
def test_the_strip_fits_700_pixels_without_overlap(qtbot: QtBot, scale: float) -> None:
    strip = strip_of(qtbot, Objective(dual_clip=3.0, entropy_bonus=0.01))
    strip.set_look(DARK, scale)
    strip.resize(700, strip.heightForWidth(700))
    strip.show()
    places = [button.geometry() for button in strip.buttons]
    assert all(strip.rect().contains(place) for place in places)
    assert not any(a.intersects(b) for i, a in enumerate(places) for b in places[:i])
    assert (grey(strip, DARK.colour("ground")) > 180).any()


def test_changing_digits_move_nothing(qtbot: QtBot) -> None:
    strip = strip_of(qtbot, Objective())
    strip.resize(strip.sizeHint())
    before = [button.geometry() for button in strip.buttons]
    strip.set_values(dict.fromkeys(VALUES, "−0.001"))
    strip.set_values(VALUES)
    assert [button.geometry() for button in strip.buttons] == before


def test_one_term_can_be_marked(qtbot: QtBot) -> None:
    strip = strip_of(qtbot, Objective())
    strip.highlight("advantage")
    assert {button.term.key for button in strip.buttons if button.marked} == {"advantage"}
    strip.highlight(None)
    assert not any(button.marked for button in strip.buttons)
