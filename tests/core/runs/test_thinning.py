"""A run file that an earlier version thinned says what is gone, keeps its curves, and can be continued."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from grpo_core import learners
from grpo_core.config import Settings
from grpo_core.errors import RunFileError
from grpo_core.export.tables import export_folder
from grpo_core.metrics import METRICS, metrics
from grpo_core.record import Step
from grpo_core.runs.library import Lineage
from grpo_core.runs.run_file import RunReader, RunWriter, copy_run
from grpo_core.runs.thinning import Stretch, stretch_at, stretches_text
from tests.core.runs.conftest import edited, written
from tests.core.runs.thinned import thinned
from tests.core.steps import rebuild_series

MADE = [next(learner) for learner in [learners.learner(Settings())] for _ in range(20)]
SCALARS = [metrics(step) for step in MADE]
STRETCHES = Stretch(1, 128, 4), Stretch(129, 256, 2)


def steps(first: int, last: int, settings: Settings | None = None) -> Iterator[tuple[Step, dict[str, float]]]:
    """Yield updates, cycling through twenty different ones, which serve as well here as thousands of computed ones."""
    for number in range(first, last + 1):
        step = dataclasses.replace(MADE[number % 20], step=number)
        yield step if settings is None else dataclasses.replace(step, settings=settings), SCALARS[number % 20]


def thinned_run(path: Path) -> Path:
    """Write and close a run of 300 updates, of which the first 256 are thinned."""
    with RunWriter.create(path, Settings()) as writer:
        changed = Settings().replace({"objective.beta": 0.5})
        for step, scalars in (*steps(1, 76), *steps(77, 300, changed)):
            writer.append(step, scalars)
    thinned(path, *STRETCHES)
    return path


def test_what_was_thinned_is_told_and_everything_else_is_there(tmp_path: Path) -> None:
    with RunReader.open(thinned_run(tmp_path / "run.grpo")) as reader:
        assert reader.thinned == STRETCHES
        for number in range(1, reader.last + 1):
            stretch = stretch_at(reader.thinned, number)
            if stretch is None or number % stretch.every == 0 or number in (1, 77):
                assert reader.step(number).step == number
                assert np.array_equal(reader.step(number).rewards, MADE[number % 20].rewards)
            else:
                with pytest.raises(
                    RunFileError, match=r"dropped when run\.grpo was thinned out\. Of updates .* is kept"
                ):
                    reader.step(number)
        for name in METRICS:
            expected = [SCALARS[number % 20][name] for number in range(1, reader.last + 1)]
            assert np.array_equal(reader.series(name), expected, equal_nan=True)
        assert reader.settings_changes()[1][0] == 77


def test_a_thinned_run_goes_on_is_copied_and_rebuilt(tmp_path: Path) -> None:
    path = thinned_run(tmp_path / "run.grpo")
    with RunReader.open(path) as reader:
        kept = reader.step(300)
    with RunWriter.open(path) as writer:
        for step, scalars in steps(301, 320):
            writer.append(step, scalars)
    rebuild_series(path)
    copy_run(path, tmp_path / "copy.grpo")
    with RunReader.open(tmp_path / "copy.grpo") as reader:
        assert reader.last == 320 and reader.thinned == STRETCHES
        assert reader.series("reward_mean")[299] == metrics(kept)["reward_mean"]
        assert not np.isnan(reader.series("reward_mean")).any()


def test_the_nearest_kept_update_also_in_the_run_it_branched_from(tmp_path: Path) -> None:
    path = thinned_run(tmp_path / "run.grpo")
    with RunReader.open(path) as reader:
        every = reader.thinned[0].every
        assert reader.kept(every + 1) == every
        assert reader.kept(every + 1, forwards=True) == 2 * every
        assert reader.kept(1) == 1  # the first under its settings
        assert reader.kept(0) is None
        assert reader.kept(reader.last + 1, forwards=True) is None
        point = 3 * every
        with RunWriter.create(tmp_path / "child.grpo", Settings(), parent=(reader, point)) as writer:
            writer.append(*next(steps(point + 1, point + 1)))
    with RunReader.open(tmp_path / "child.grpo") as child, closing(Lineage(child, tmp_path)) as lineage:
        assert lineage.kept(2, forwards=True) == every
        assert lineage.kept(2 * every + 1, forwards=True) == point
        assert lineage.kept(point) == point
        assert lineage.kept(point + 1) == point + 1
        assert lineage.kept(every - 1) == 1
        assert lineage.thinned() == (Stretch(1, point - 1, every),)


@pytest.mark.parametrize("told", ["x", "[[1, 2]]", "[[5, 2, 2]]", "[[1, 9, 2], [9, 12, 2]]", "[[1, 2, true]]", "7"])
def test_a_damaged_list_of_what_was_dropped_is_told(tmp_path: Path, told: str) -> None:
    path = noted(tmp_path / "run.grpo", told)
    with RunReader.open(path) as reader, pytest.raises(RunFileError, match="damaged"):
        _ = reader.thinned
    with pytest.raises(RunFileError, match="damaged"):
        RunWriter.open(path)


def test_a_list_of_more_than_the_run_holds_is_told(tmp_path: Path) -> None:
    with pytest.raises(RunFileError, match="damaged"):
        RunWriter.open(noted(tmp_path / "run.grpo", "[[1, 4611686018427387903, 2]]"))


def noted(path: Path, told: str) -> Path:
    """Write a run of one update which says that these stretches of it were thinned."""
    written(path, [MADE[0]])
    edited(path, "INSERT INTO meta(key, value) VALUES ('thinned', ?)", values=(told,))
    return path


def test_an_export_says_once_what_is_not_there(tmp_path: Path) -> None:
    path = thinned_run(tmp_path / "run.grpo")
    with RunReader.open(path) as reader:
        updates, left_out = export_folder(reader, tmp_path / "out", steps=range(1, 41))
    with RunReader.open(path) as reader:
        assert left_out == [stretches_text(reader.thinned[:1])]
        assert updates == sum(reader.kept(number) == number for number in range(1, 41))
