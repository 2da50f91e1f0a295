"""A checkpoint is loaded in the background, and its run is shown."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.app.conftest import Driver
from tests.app.runs import a_run

pytestmark = pytest.mark.one_window


def test_the_run_of_a_checkpoint_is_shown_with_a_sentence_about_it(
    driver: Driver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def taken_up(folder: Path, target: Path) -> str:
        a_run(target)
        return f"{folder.name} goes on at update 4."

    monkeypatch.setattr("app.trainers.controllers.model_folders.take_up", taken_up)
    driver.program.part("trainers").model_folders.take_up(tmp_path / "kept")
    driver.opened()
    assert driver.head == 3
    assert "kept goes on at update 4." in driver.messages
