"""A large file of episodes shows its end first, then everything, and is scanned only once. Results computed from a
recorded run are available at the next opening, unless its files have changed.
"""

from __future__ import annotations

import copy
import json
import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from grpo_core.foreign.recording import Source
from grpo_core.trainers.importers import line_index, open_source, series_cache
from grpo_core.trainers.importers.series_cache import SeriesCache
from grpo_core.trainers.importers.verifiers import VerifiersRun
from grpo_core.trainers.recorded_series import numbers
from tests.core.trainers.sources import SOURCES, lines_of, source_path
from tests.core.trainers.trace_files import DATA, copied

EPISODES = lines_of(source_path("verifiers", Path()))


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


@pytest.fixture
def cache(tmp_path: Path) -> SeriesCache:
    return SeriesCache(tmp_path / "cache")


def rows_of(source: Source) -> list[dict[str, float]]:
    return [numbers(source, position) for position in range(1, len(source) + 1)]


@pytest.mark.parametrize("name", ["trace", *SOURCES])
def test_every_number_of_every_kind_of_source_comes_back(name: str, cache: SeriesCache, tmp_path: Path) -> None:
    path = DATA / "grpo" if name == "trace" else source_path(name, tmp_path)
    source = open_source(path)
    assert cache.rows(source) == []
    cache.extend(source, 0, rows_of(source))
    kept = cache.rows(open_source(path))
    assert len(kept) == len(source)
    for row, computed in zip(kept, rows_of(source), strict=True):
        known = {key: value for key, value in row.items() if key in computed}
        assert known == pytest.approx(computed, nan_ok=True) and all(np.isnan(row[key]) for key in row.keys() - known)


def test_updates_that_come_later_are_added_and_a_gap_is_not(cache: SeriesCache) -> None:
    source = open_source(DATA / "entbonus")
    rows = rows_of(source)
    cache.extend(source, 2, rows[2:])
    assert cache.rows(source) == []
    cache.extend(source, 0, rows[:2])
    cache.extend(source, 2, rows[2:])
    assert len(cache.rows(source)) == len(source) == 4


def test_what_stands_after_an_update_that_was_written_again_is_computed_again(
    cache: SeriesCache, tmp_path: Path
) -> None:
    folder = copied("entbonus", tmp_path)
    source = open_source(folder)
    cache.extend(source, 0, rows_of(source))
    os.utime(folder / "rank0/attempt0/step_00000003.parquet", (1, 1))
    assert len(cache.rows(open_source(folder))) == 2


def test_another_run_at_the_same_path_has_nothing_of_the_first(cache: SeriesCache, tmp_path: Path) -> None:
    folder = copied("grpo", tmp_path)
    cache.extend(source := open_source(folder), 0, rows_of(source))
    shutil.rmtree(folder)
    shutil.copytree(DATA / "entbonus", folder)
    assert cache.rows(open_source(folder)) == []


@pytest.mark.parametrize("kept", [0.0, 0.3, 0.9, 0.999])
def test_a_torn_file_is_as_none_at_all(kept: float, cache: SeriesCache) -> None:
    source = open_source(DATA / "grpo")
    cache.extend(source, 0, rows_of(source))
    (file,) = cache.folder.iterdir()
    file.write_bytes(file.read_bytes()[: int(kept * file.stat().st_size)])
    assert cache.rows(source) == []
    cache.extend(source, 0, rows_of(source))
    assert len(cache.rows(source)) == 2


def test_numbers_of_another_version_are_not_used(cache: SeriesCache, monkeypatch: pytest.MonkeyPatch) -> None:
    source = open_source(DATA / "grpo")
    monkeypatch.setattr(series_cache, "VERSION", 0)
    cache.extend(source, 0, rows_of(source))
    monkeypatch.undo()
    assert cache.rows(source) == []


def test_a_folder_that_cannot_be_written_keeps_nothing_and_stops_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    cache = SeriesCache(tmp_path / "file" / "cache")
    source = open_source(DATA / "grpo")
    cache.extend(source, 0, rows_of(source))
    assert cache.rows(source) == []


def test_the_sources_that_were_opened_longest_ago_go_first(
    cache: SeriesCache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(line_index, "MOST_FILES", 2)
    for number, name in enumerate(("grpo", "entbonus", "two_processes", "short_generations")):
        source = open_source(DATA / name)
        cache.extend(source, 0, rows_of(source))
        for file in cache.folder.iterdir():
            if file.stat().st_mtime > 1000:
                os.utime(file, (number, number))
    assert len(list(cache.folder.iterdir())) <= 3
    assert cache.rows(open_source(DATA / "short_generations")) and not cache.rows(open_source(DATA / "grpo"))
