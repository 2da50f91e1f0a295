"""Colours that are readable and distinct with every kind of colour vision, and the program's font on all widgets."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
import pytest
from PySide6.QtCore import QEvent, Qt
from PySide6.QtGui import QColor, QFont
from PySide6.QtWidgets import QApplication, QFileDialog, QListView, QMainWindow, QPushButton, QToolButton, QWidget
from pytestqt.qtbot import QtBot

from app.theme.look import CHOICES, Look, apply, choose, put_font_on_all
from app.theme.stylesheet import stylesheet
from app.theme.tokens import COLOURS, CONTRAST, DARK, HOLLOW, LIGHT, LINES, PROJECTOR, SAME_AS, THEMES, Theme, contrast

MEANINGS = {"policy", "push_up", *HOLLOW, *LINES}
MARKS = (*sorted(MEANINGS), "selection")
TOGETHER = (
    *itertools.combinations(("policy", "reward", "kl", "entropy"), 2),
    *itertools.product(("push_down",), ("policy", "reward", "kl", "entropy", "reference")),
    ("policy", "reference"),
    ("reward", "reference"),
    ("old", "reference"),
    ("old", "push_down"),
)
"""Pairs shown in one picture. Policy and old share a hue on purpose: one is filled, the other hollow."""
APART = 10.0
"""Minimum CIE 1976 colour difference; 2.3 is just noticeable."""
# Machado, Oliveira, Fernandes 2009, severity 1, on linear RGB.
EYES = {
    "usual": np.eye(3),
    "protanopia": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
    ),
    "deuteranopia": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
    ),
}
XYZ = np.array(
    [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]]
)


def as_seen(rgb: np.ndarray, eye: str) -> np.ndarray:
    """Return the CIE Lab values (..., 3) of colours (..., 3), from 0 to 1, as ``eye`` sees them."""
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    xyz = np.clip(linear @ EYES[eye].T, 0, 1) @ XYZ.T / np.array([0.95047, 1.0, 1.08883])
    f = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.stack([116 * f[..., 1] - 16, 500 * (f[..., 0] - f[..., 1]), 200 * (f[..., 1] - f[..., 2])], axis=-1)


def seen(colour: QColor, eye: str) -> np.ndarray:
    """Return the CIE Lab values of ``colour`` as ``eye`` sees it, (3,)."""
    return as_seen(np.array([colour.redF(), colour.greenF(), colour.blueF()]), eye)


@pytest.mark.parametrize("theme", THEMES.values(), ids=list(THEMES))
def test_marks_stand_out_from_their_ground(theme: Theme) -> None:
    least = 4.5 if theme.bold else 3.0
    for meaning, ground in itertools.product(MARKS, ("ground", "surface")):
        assert contrast(theme.colour(meaning), theme.colour(ground)) >= least, (meaning, ground)


@pytest.mark.parametrize("theme", THEMES.values(), ids=list(THEMES))
def test_text_can_be_read_everywhere(theme: Theme) -> None:
    for meaning, ground in itertools.product((*MARKS, "text", "muted"), ("ground", "surface")):
        assert contrast(theme.ink(meaning), theme.colour(ground)) >= 4.5, (meaning, ground)
    for meaning in ("text", "muted"):
        assert theme.ink(meaning) == theme.colour(meaning)
    accent = theme.colour("accent")
    assert contrast(theme.on(accent), accent) >= 4.5


@pytest.mark.parametrize("eye", EYES)
@pytest.mark.parametrize("theme", THEMES.values(), ids=list(THEMES))
def test_colours_that_meet_are_told_apart(theme: Theme, eye: str) -> None:
    for one, other in TOGETHER:
        difference = np.linalg.norm(seen(theme.colour(one), eye) - seen(theme.colour(other), eye))
        assert difference >= APART, (one, other, difference)


def test_meanings_that_share_a_colour_differ_by_another_cue() -> None:
    by_colour = itertools.groupby(sorted(MEANINGS, key=LIGHT.hex), key=LIGHT.hex)
    for _, names in by_colour:
        cues = [(LINES.get(name), name in HOLLOW) for name in names if name != "push_up"]
        assert len(set(cues)) == len(cues)


def test_an_unknown_meaning_is_refused_with_those_there_are() -> None:
    with pytest.raises(KeyError, match=r"no colour is called 'bogus'.*reward"):
        LIGHT.colour("bogus")
    assert all(LIGHT.colour(name).isValid() for name in COLOURS.keys() | SAME_AS.keys())


def test_text_on_a_faint_tint_is_that_of_the_ground() -> None:
    tint = DARK.colour("push_up")
    tint.setAlphaF(0.1)
    assert DARK.on(tint) == DARK.colour("text")
    assert DARK.on(DARK.colour("push_up")) == DARK.colour("ground")


def test_a_projector_gets_wide_lines(qapp: QApplication) -> None:
    assert (PROJECTOR.pen("reward").widthF(), LIGHT.pen("reward").widthF()) == (3.0, 1.0)


def test_the_type_scale_grows_with_the_user(qapp: QApplication) -> None:
    assert LIGHT.font("body", 2.0).pixelSize() == 2 * LIGHT.font("body").pixelSize()
    assert "14px" not in stylesheet(LIGHT, 1.0).split("QLabel#number")[1]


@pytest.mark.parametrize("choice", CHOICES)
@pytest.mark.parametrize("scale", [0.8, 1.0, 2.5])
def test_the_application_takes_the_look(qapp: QApplication, choice: str, scale: float) -> None:
    theme = apply(qapp, choice, scale)
    assert qapp.palette().window().color() == theme.colour("ground")
    assert qapp.font().pixelSize() == round(13 * scale)
    assert "{" + "text}" not in qapp.styleSheet()


def test_the_look_tells_when_it_changes_and_only_then(qapp: QApplication) -> None:
    look = Look(qapp, "light")
    told: list[tuple[str, float]] = []
    look.changed.connect(lambda: told.append((look.theme.name, look.scale)))
    look.set(choice="dark")
    look.set(choice="dark")
    look.zoom(1)
    look.zoom(0)
    look.set(scale=9.0)
    assert told == [("dark", 1.0), ("dark", 1.1), ("dark", 1.0), ("dark", 2.5)]
    with pytest.raises(ValueError, match="not a theme"):
        look.set(choice="sepia")
    assert look.choice == "dark"


class Styled(QWidget):
    """Counts how often its style is set."""

    times = 0

    def changeEvent(self, event: QEvent) -> None:
        self.times += event.type() == QEvent.Type.StyleChange
        super().changeEvent(event)


def test_a_change_that_leaves_the_stylesheet_as_it_is_styles_no_widget_again(qtbot: QtBot, qapp: QApplication) -> None:
    widget, look = Styled(), Look(qapp, "light")
    qtbot.addWidget(widget)
    look.apply_style()
    widget.show()
    before = widget.times
    look.set(legible=24)
    assert widget.times == before
    look.set("dark", 1.5)
    assert widget.times > before
    assert qapp.styleSheet() == stylesheet(look.theme, 1.5)
    look.set("light", 1.0, legible=0)


def test_high_contrast_is_for_eyes_that_need_it() -> None:
    for meaning, ground in itertools.product((*MARKS, "text", "muted", "border"), ("ground", "surface")):
        assert contrast(CONTRAST.colour(meaning), CONTRAST.colour(ground)) >= 7.0, (meaning, ground)


def test_system_is_light_or_dark(qapp: QApplication) -> None:
    assert choose(qapp, "system").name in ("light", "dark")


def test_the_buttons_of_qts_own_file_dialog_show_their_icons(qtbot: QtBot, qapp: QApplication) -> None:
    """This dialog is used if the desktop has none. Padding made for text would leave its icons no space."""
    apply(qapp, "light", 1.0)
    dialog = QFileDialog()
    dialog.setOption(QFileDialog.Option.DontUseNativeDialog)
    qtbot.addWidget(dialog)
    dialog.show()
    buttons = [
        button for button in dialog.findChildren(QToolButton) if button.isVisible() and not button.icon().isNull()
    ]
    assert len(buttons) >= 4
    for button in buttons:
        image = button.grab().toImage()
        inner = image.copy(image.rect().adjusted(6, 6, -6, -6))
        colours = {inner.pixel(x, y) for x in range(inner.width()) for y in range(inner.height())}
        assert len(colours) > 8, button.objectName()


@pytest.mark.parametrize("theme", THEMES)
def test_a_button_that_does_nothing_now_does_not_stand_out(theme: str, qtbot: QtBot, qapp: QApplication) -> None:
    apply(qapp, theme, 1.0)
    button = QToolButton()
    button.setProperty("primary", True)
    qtbot.addWidget(button)
    button.resize(80, 40)
    button.show()
    assert button.grab().toImage().pixelColor(16, 16) == THEMES[theme].colour("accent")
    button.setEnabled(False)
    assert button.grab().toImage().pixelColor(16, 16) == THEMES[theme].colour("surface")


@pytest.mark.parametrize("theme", THEMES)
def test_a_button_reached_with_tab_has_one_mark_of_the_focus(theme: str, qtbot: QtBot, qapp: QApplication) -> None:
    apply(qapp, theme, 1.0)
    window = QWidget()
    button = QPushButton("Paste", window)
    button.setGeometry(10, 10, 120, 40)
    qtbot.addWidget(window)
    window.show()
    window.activateWindow()
    button.setFocus()
    qtbot.waitUntil(button.hasFocus)
    before = button.grab().toImage()
    window.setAttribute(Qt.WidgetAttribute.WA_KeyboardFocusChange)  # as after Tab
    assert button.grab().toImage() == before


KINDS = ("QMenuBar", "QMenu", "QAbstractItemView")


@pytest.fixture
def system(qapp: QApplication) -> Iterator[QFont]:
    """A font that the system sets for menus and lists. The application's fonts are restored afterwards."""
    before, foreign = qapp.font(), QFont("JetBrains Mono", 31)
    yield foreign
    qapp.setFont(before)  # takes those for kinds of widgets away


def test_menus_and_lists_take_the_applications_font(qtbot: QtBot, qapp: QApplication, system: QFont) -> None:
    Look(qapp, "light")
    for kind in KINDS:
        qapp.setFont(system, kind)  # type: ignore[arg-type]  # PySide6 takes str and says bytes
    window, listed = QMainWindow(), QListView()
    qtbot.addWidget(window)
    qtbot.addWidget(listed)
    widgets = (window.menuBar(), window.menuBar().addMenu("File"), listed)
    for widget in widgets:
        widget.ensurePolished()
    assert [widget.font().pointSize() for widget in widgets] == [31, 31, 31]  # as Windows would have them
    put_font_on_all(qapp)
    assert {widget.font().family() for widget in widgets} == {qapp.font().family()}
    assert {qapp.font(kind).family() for kind in KINDS} == {qapp.font().family()}  # type: ignore[call-overload]
