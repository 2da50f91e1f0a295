"""Drawing without a screen, on Linux and on Windows."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.display import draw_offscreen


def test_windows_draws_offscreen_and_is_given_a_folder_in_which_qt_opens_no_fonts_itself() -> None:
    environment = {"QT_QPA_PLATFORM": "windows"}
    draw_offscreen(environment, "win32")
    assert environment.pop("QT_QPA_PLATFORM") == "offscreen"
    folder = Path(environment.pop("QT_QPA_FONTDIR"))
    assert folder.is_dir() and not environment
    assert not {path.suffix for path in folder.iterdir()} & {".ttf", ".otf", ".pfa", ".pfb"}


@pytest.mark.parametrize("platform", ["linux", "darwin"])
def test_other_systems_draw_offscreen_with_their_own_fonts(platform: str) -> None:
    environment: dict[str, str] = {}
    draw_offscreen(environment, platform)
    assert environment == {"QT_QPA_PLATFORM": "offscreen"}
