"""The shipped files: found wherever the program runs from, and sufficient to draw everything that the interface
shows.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from PySide6.QtCore import QSize
from PySide6.QtGui import QColor, QFont, QFontInfo, QFontMetricsF, QIcon, QImage, QRawFont, QTextLayout
from PySide6.QtWidgets import QApplication

from app.resources import MONO, SANS, SIGNS, icon, load_fonts, resource

SHOWN = "αβεμπσδτλγρθωΣΔ∇∂√∈∞≈≠‖−±×·÷≤≥→←↑↓▲▼△▽◆◇●○▸◂▶◀■□▪⏎↵␣…“”‘’–—₀₁₂₃ₙᵢⱼₜ⁺⁻¹²³½°✓⟨⟩⌊⌋ᵀ"
ROOT = Path(__file__).parents[2]
HINTS = QFont.HintingPreference.PreferNoHinting
PROGRAM_ICON = "grpo-lab"
ICONS = sorted({path.stem for path in resource("icons").glob("*.svg")} - {PROGRAM_ICON})


def families(text: str, family: str) -> set[str]:
    """Return the font families whose glyphs draw ``text`` in ``family``."""
    layout = QTextLayout(text, QFont(family))
    layout.beginLayout()
    layout.createLine()
    layout.endLayout()
    return {run.rawFont().familyName() for run in layout.glyphRuns() if all(run.glyphIndexes())}


def inked(image: QImage) -> list[QColor]:
    """Return the colours of the opaque pixels."""
    colours = (image.pixelColor(x, y) for x in range(image.width()) for y in range(image.height()))
    return [colour for colour in colours if colour.alpha() == 255]


def test_a_resource_is_found_in_the_source_tree_and_beside_a_frozen_program(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert resource("icons").is_dir()
    monkeypatch.setattr(sys, "_MEIPASS", str(tmp_path), raising=False)
    assert resource("icons/run.svg") == tmp_path / "resources" / "icons" / "run.svg"


def test_both_families_load_in_their_weights(qapp: QApplication) -> None:
    assert load_fonts() == (SANS, MONO)
    for family, weight in ((SANS, QFont.Weight.Normal), (SANS, QFont.Weight.DemiBold), (MONO, QFont.Weight.Bold)):
        info = QFontInfo(QFont(family, 10, weight))
        assert (info.family(), info.weight()) == (family, weight)


@pytest.mark.parametrize("family", [SANS, MONO])
def test_every_sign_is_drawn_by_a_shipped_font(qapp: QApplication, family: str) -> None:
    load_fonts()
    foreign = {sign for sign in SHOWN if not families(sign, family) or families(sign, family) - {SANS, MONO, SIGNS}}
    assert not foreign


def test_a_line_is_no_higher_for_a_sign_in_it(qapp: QApplication) -> None:
    load_fonts()
    metrics = QFontMetricsF(QFont(SANS, 10))
    layout = QTextLayout("∇ ▸ ⟨x⟩ ␣", QFont(SANS, 10))
    layout.beginLayout()
    line = layout.createLine()
    layout.endLayout()
    assert line.height() <= metrics.height() + 1


@pytest.mark.parametrize("weight", ["Regular", "Bold"])
def test_the_font_of_a_language_has_all_its_characters_and_the_height_of_the_others(
    weight: str, qapp: QApplication
) -> None:
    inter, own = QRawFont(), QRawFont()
    inter.loadFromData(resource("fonts/Inter-Regular.otf").read_bytes(), 100, HINTS)
    own.loadFromData(resource(f"fonts/zh-CN/Chinese-{weight}.otf").read_bytes(), 100, HINTS)
    catalogue = ROOT / "resources" / "translations" / "zh_CN.ts"
    used = {sign for sign in catalogue.read_text("utf-8") if ord(sign) >= 0x2E80}
    assert len(used) > 100
    assert not {sign for sign in used if not own.supportsCharacter(ord(sign))}, "python -m tools.make_fonts … zh-CN"
    assert (own.ascent(), own.descent()) == pytest.approx((inter.ascent(), inter.descent()), abs=1)


@pytest.mark.parametrize(("language", "family"), [("zh_CN", "GRPO Lab Chinese"), ("en", "")])
def test_the_fonts_of_a_language_are_registered_only_for_it(language: str, family: str) -> None:
    program = (
        f"from app import language; language.choose(['--language', '{language}'])\n"
        "from PySide6.QtWidgets import QApplication; application = QApplication([])\n"
        "from app.resources import load_fonts; load_fonts()\n"
        "from tests.app.test_resources import families\n"
        "print(*families('策', 'Inter') | families('策', 'JetBrains Mono'))"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    drawn_by = done.stdout.strip()
    assert drawn_by == family if family else "GRPO Lab" not in drawn_by


def test_figures_can_be_made_equally_wide(qapp: QApplication) -> None:
    load_fonts()
    font = QFont(SANS, 20)
    font.setFeature(QFont.Tag("tnum"), 1)
    assert len({QFontMetricsF(font).horizontalAdvance(figure) for figure in "0123456789"}) == 1


@pytest.mark.parametrize("name", ICONS)
def test_an_icon_is_one_drawing_on_a_grid_of_sixteen_in_the_colour_asked_for(qapp: QApplication, name: str) -> None:
    svg = resource(f"icons/{name}.svg").read_text("utf-8")
    assert 'viewBox="0 0 16 16"' in svg
    assert set(re.findall(r'(?:fill|stroke)="([^"]+)"', svg)) <= {"#000", "none"}
    colours = inked(icon(name, "#D55E00").pixmap(QSize(64, 64)).toImage())
    assert colours
    assert {colour.name() for colour in colours} == {"#d55e00"}


def test_an_icon_is_drawn_anew_for_a_screen_of_twice_the_density(qapp: QApplication) -> None:
    small, dense = (icon("run", "#000000").pixmap(QSize(16, 16), ratio) for ratio in (1.0, 2.0))
    assert (small.width(), dense.width(), dense.devicePixelRatio()) == (16, 32, 2.0)
    enlarged = small.toImage().scaled(dense.size())
    enlarged.setDevicePixelRatio(dense.devicePixelRatio())
    assert dense.toImage() != enlarged


def test_a_disabled_icon_is_fainter(qapp: QApplication) -> None:
    image = icon("run", "#000000").pixmap(QSize(32, 32), QIcon.Mode.Disabled).toImage()
    assert not inked(image)
    assert any(image.pixelColor(x, 16).alpha() for x in range(32))


def test_the_program_has_an_icon_in_its_own_colours(qapp: QApplication) -> None:
    colours = {colour.name() for colour in inked(icon(PROGRAM_ICON, "#000000").pixmap(QSize(64, 64)).toImage())}
    assert len(colours) > 1


def test_an_icon_without_room_draws_nothing_and_one_that_does_not_exist_is_empty(qapp: QApplication) -> None:
    assert icon("run", "#000000").pixmap(QSize(0, 16)).isNull()  # a warning of Qt's would fail this test
    assert icon("no such icon", "#000000").isNull()


def test_a_disabled_icon_has_the_colour_of_its_own(qapp: QApplication) -> None:
    made = icon("run", "#ffffff", disabled="#000000")
    for mode, light in ((QIcon.Mode.Normal, True), (QIcon.Mode.Disabled, False)):
        image = made.pixmap(QSize(32, 32), mode).toImage()
        assert (image.pixelColor(16, 16).lightness() > 128) is light
        assert image.pixelColor(16, 16).alpha() > 50
