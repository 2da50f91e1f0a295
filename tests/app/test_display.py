"""Drawing without a screen, on Linux and on Windows."""

from __future__ import annotations

import pytest

from app.display import draw_offscreen
from grpo_core.shipped import resource


def test_windows_draws_offscreen_with_the_fonts_that_are_shipped() -> None:
    environment = {"QT_QPA_PLATFORM": "windows"}
    draw_offscreen(environment, "win32")
    assert environment == {"QT_QPA_PLATFORM": "offscreen", "QT_QPA_FONTDIR": str(resource("fonts"))}


@pytest.mark.parametrize("platform", ["linux", "darwin"])
def test_other_systems_draw_offscreen_with_their_own_fonts(platform: str) -> None:
    environment: dict[str, str] = {}
    draw_offscreen(environment, platform)
    assert environment == {"QT_QPA_PLATFORM": "offscreen"}
