"""A large file of episodes shows its end first, then everything, and is scanned only once."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from grpo_core.trainers.importers import line_index, open_source
from grpo_core.trainers.importers.verifiers import VerifiersRun
from tests.core.trainers.sources import DATA, SOURCES

EPISODES = [json.loads(line) for line in (DATA / SOURCES["verifiers"]).read_text("utf-8").splitlines()]


def episode(step: int, **changed: Any) -> str:
    made = copy.deepcopy(EPISODES[0]) | changed
    made["run"]["work"]["step"] = step
    return json.dumps(made) + "\n"


def written(path: Path, steps: int) -> Path:
    path.write_text("".join(episode(1 + n // 4) for n in range(4 * steps)), "utf-8")
    return path


@pytest.fixture
def small_tail(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("grpo_core.trainers.importers.verifiers.TAIL", 12 * len(episode(1)))
    monkeypatch.setattr("grpo_core.trainers.importers.line_index.WORTH_KEEPING", 1)


@pytest.mark.usefixtures("small_tail")
def test_the_end_of_a_large_file_is_there_first_and_then_all_of_it(tmp_path: Path) -> None:
    path, cache = written(tmp_path / "traces.jsonl", 9), tmp_path / "cache"
    run = open_source(path, index=cache)
    assert run.labels == [8, 9] and run.partial, "a step whose beginning is not in sight is left out"
    assert any("entire file" in note for note in run.notes)
    end = run.completions(len(run)).completions
    whole = copy.deepcopy(run)
    assert whole.refresh() == 9 and not whole.partial
    assert whole.completions(9).completions == end
    assert not any("entire file" in note for note in whole.notes)
    assert len(run) == 2, "who looks at the old one sees what there was"


@pytest.mark.usefixtures("small_tail")
def test_a_file_that_was_looked_through_is_whole_at_its_next_opening(tmp_path: Path) -> None:
    path, cache = written(tmp_path / "traces.jsonl", 9), tmp_path / "cache"
    open_source(path, index=cache).refresh()
    kept = line_index.kept_index(cache, path)
    assert kept is not None and len(kept.starts) == 36
    with path.open("a", encoding="utf-8") as file:
        file.write(episode(10))
    again = open_source(path, index=cache)
    assert not again.partial and again.labels == list(range(1, 11))
    assert again.stamp(3) == open_source(path).stamp(3)


@pytest.mark.usefixtures("small_tail")
@pytest.mark.parametrize("damage", ["another file", "torn index", "no index"])
def test_an_index_that_does_not_fit_is_made_again(damage: str, tmp_path: Path) -> None:
    path, cache = written(tmp_path / "traces.jsonl", 9), tmp_path / "cache"
    open_source(path, index=cache).refresh()
    (file,) = cache.glob(f"*{line_index.SUFFIX}")
    if damage == "another file":
        path.write_text("".join(episode(20 - n // 4, id=f"other {n}") for n in range(40)), "utf-8")
    else:
        file.write_bytes(file.read_bytes()[:40] if damage == "torn index" else b"")
    run = open_source(path, index=cache)
    assert run.partial
    run.refresh()
    assert run.labels == open_source(path).labels


def test_words_of_a_text_are_not_taken_for_the_step(tmp_path: Path) -> None:
    task = {"data": {"prompt": '"run":{"work":{"step":7}}', "run": {"work": {}}}}
    path = tmp_path / "traces.jsonl"
    path.write_text(episode(3, task=task) + episode(4), "utf-8")
    assert VerifiersRun(path).labels == [3, 4]


def test_a_line_that_is_torn_within_is_named_where_its_step_is_read(tmp_path: Path) -> None:
    path = tmp_path / "traces.jsonl"
    torn = episode(1).rstrip("\n")
    path.write_text(episode(1) + torn[: len(torn) // 2] + "}\n" + episode(2), "utf-8")
    run = VerifiersRun(path)
    assert run.labels == [1, 2] and len(run.completions(1).rewards) == 1
    assert any(f"byte {len(episode(1))} of traces.jsonl is not JSON" in note for note in run.notes)
