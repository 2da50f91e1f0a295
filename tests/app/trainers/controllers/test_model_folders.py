"""A model from a folder is inspected in the background, and the window need not read its files again. A checkpoint is
loaded in the background, and its run is shown.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

from grpo_core.foreign.readers import Readers
from grpo_core.trainers.hf import folder as folder_module
from grpo_core.trainers.hf.reading import read_model
from grpo_core.trainers.model_summary import in_fewer_words, model_summary
from grpo_core.update_time import UNMEASURED, UpdateTime
from tests.app.conftest import Driver
from tests.app.runs import a_run
from tests.core.trainers.hf.tiny import saved

pytestmark = pytest.mark.one_window


@pytest.mark.skipif(find_spec("transformers") is None, reason="not installed: transformers")
def test_the_line_under_evolution_reads_no_file_in_the_windows_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    readers = Readers(own_process=False)
    files, _ = read_model(readers, saved(tmp_path / "tiny", "llama"))

    def read(path: Path) -> None:
        raise AssertionError("the files are read again")

    monkeypatch.setattr(folder_module, "look", read)
    assert f"{files.parameters:,} parameters" in model_summary(files.settings)
    measured = UpdateTime(sampling=8.0, learning=4.0, device="cpu", loading=2.0)
    whole = model_summary(files.settings, measured)
    assert UNMEASURED in model_summary(files.settings)
    assert "loading took 2 s and an update up to 12 s" in model_summary(files.settings, None, measured)
    for time in (None, measured):
        assert 0 < len(in_fewer_words(files.settings, time)) < 0.9 * len(model_summary(files.settings, time))
    assert "12 s" in in_fewer_words(files.settings, measured) and "8 s of sampling" in whole


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
