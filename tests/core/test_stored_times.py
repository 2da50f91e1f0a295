"""Update times are kept between starts, for the same model with settings that take equally long."""

from __future__ import annotations

from pathlib import Path

import pytest

from grpo_core.config import Settings, folder_settings
from grpo_core.update_time import MOST, UNMEASURED, StoredTimes, UpdateTime

TIME = UpdateTime(sampling=8.0, learning=4.0, device="cpu", loading=2.0)


@pytest.fixture
def settings() -> Settings:
    return folder_settings("model", "0123456789abcdef")


def test_what_was_measured_is_known_at_the_next_start(settings: Settings, tmp_path: Path) -> None:
    assert StoredTimes(tmp_path / "times.json").sentence(settings) == UNMEASURED
    StoredTimes(tmp_path / "times.json").keep(settings, TIME)
    again = StoredTimes(tmp_path / "times.json")
    assert again.of(settings) == TIME
    assert again.of(settings.replace({"seed": 9, "optimizer.learning_rate": 1e-3})) == TIME, "neither takes time"
    assert "loading took 2 s and an update up to 12 s" in again.sentence(settings)
    assert [path.name for path in tmp_path.iterdir()] == ["times.json"]


@pytest.mark.parametrize(
    "changes",
    [{"learner.group_size": 32}, {"task.max_tokens": 99}, {"model.adapter_rank": 0}, {"model.digest": "other"}],
    ids=str,
)
def test_another_model_or_more_work_has_no_measurement(
    changes: dict[str, object], settings: Settings, tmp_path: Path
) -> None:
    times = StoredTimes(tmp_path / "times.json")
    times.keep(settings, TIME)
    assert times.of(settings.replace(changes)) is None


@pytest.mark.parametrize("content", ["", "[1]", "{", '{"x": 1}', "x" * 200_000])
def test_a_spoilt_file_holds_none_and_is_written_anew(content: str, settings: Settings, tmp_path: Path) -> None:
    path = tmp_path / "times.json"
    path.write_text(content, encoding="utf-8")
    times = StoredTimes(path)
    assert times.of(settings) is None
    times.keep(settings, TIME)
    assert times.of(settings) == TIME


def test_the_oldest_measurements_go_first_and_a_folder_that_is_gone_ends_nothing(
    settings: Settings, tmp_path: Path
) -> None:
    times = StoredTimes(tmp_path / "times.json")
    for size in range(2, MOST + 4):
        times.keep(settings.replace({"learner.group_size": size}), TIME)
    assert times.of(settings.replace({"learner.group_size": 3})) is None
    assert times.of(settings.replace({"learner.group_size": 4})) == TIME
    StoredTimes(tmp_path / "gone" / "times.json").keep(settings, TIME)
