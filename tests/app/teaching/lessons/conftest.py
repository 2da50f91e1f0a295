"""A pupil in a separate program."""

from __future__ import annotations

import pytest

from tests.app.conftest import Driver
from tests.app.teaching.lessons.hands import Pupil


@pytest.fixture
def pupil(driver: Driver) -> Pupil:
    driver.program.window.resize(1366, 768)
    driver.program.part("teaching").lessons.player.reveal.moves = False
    return Pupil(driver)
