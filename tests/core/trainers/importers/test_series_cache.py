"""Results computed from a recorded run are available at the next opening, unless its files have changed."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import numpy as np
import pytest

from grpo_core.foreign.recording import Source
from grpo_core.trainers.importers import line_index, open_source, series_cache
from grpo_core.trainers.importers.series_cache import SeriesCache
from grpo_core.trainers.recorded_series import numbers
from tests.core.trainers.sources import SOURCES, source_path
from tests.core.trainers.trace_files import DATA, copied


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
