"""The folder of autosaved runs."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from grpo_core.config import Settings
from grpo_core.errors import RunFileError
from grpo_core.runs.library import Lineage, entries, find, free_name, new_path, remove, surplus
from grpo_core.runs.run_file import RunReader, RunWriter
from tests.core.steps import random_origin, random_step, random_steps, same


def written(path: Path, count: int, age: int = 0, parent: tuple[RunReader, int] | None = None) -> str:
    """Write ``count`` more updates, with a modification time ``age`` seconds before a fixed moment. Returns the
    run's id.
    """
    with RunWriter.create(path, Settings(), title=path.stem, parent=parent, origin=random_origin()) as writer:
        for step in random_steps(count, first=writer.committed + 1):
            writer.append(step)
    os.utime(path, (2e9 - age, 2e9 - age))
    return writer.meta.id


def test_names_sort_by_time_are_readable_and_never_collide(tmp_path: Path) -> None:
    folder = tmp_path / "made when needed"
    first = new_path(folder, "Single peak at 7", now=1e9)
    assert first.name.endswith(" Single peak at 7.grpo")
    assert first.name.startswith("2001-09-")
    first.touch()
    assert new_path(folder, "Single peak at 7", now=1e9).name.endswith(" Single peak at 7 2.grpo")
    assert first.name < new_path(folder, "A", now=1e9 + 60).name


def test_a_number_follows_the_name_of_a_folder_and_precedes_the_suffix_of_a_file(tmp_path: Path) -> None:
    taken = tmp_path / "at 1.5"
    assert free_name(taken) == free_name(taken, folder=True) == taken
    taken.mkdir()
    assert free_name(taken, folder=True).name == "at 1.5 2"
    assert free_name(taken).name == "at 1 2.5"


@pytest.mark.parametrize(
    "title", ['a/b\\c:d*e?"f<g>h|i', "\n\t\x00", "", "ends with a dot.", "x" * 500, "..", "β = 0.1"]
)
def test_any_title_makes_a_name_that_can_be_written(tmp_path: Path, title: str) -> None:
    path = new_path(tmp_path, title, now=1e9)
    path.touch()
    assert path.parent == tmp_path
    assert len(path.name) < 100
    assert not set('\\/:*?"<>|\n') & set(path.name)
    assert not path.stem.endswith((".", " "))


def test_the_newest_come_first_with_what_a_list_shows(tmp_path: Path) -> None:
    written(tmp_path / "old.grpo", 3, age=100)
    written(tmp_path / "new.grpo", 5)
    new, old = entries(tmp_path)
    assert (new.path.name, new.steps, old.path.name, old.steps) == ("new.grpo", 5, "old.grpo", 3)
    assert new.meta is not None
    assert new.meta.title == "new"
    assert new.meta.ended
    assert new.error is None


def test_broken_and_open_files_are_listed_too(tmp_path: Path) -> None:
    written(tmp_path / "whole.grpo", 1)
    (tmp_path / "empty.grpo").touch()
    (tmp_path / "text.grpo").write_text("nothing of the kind" * 9)
    (tmp_path / "notes.txt").touch()
    (tmp_path / "folder.grpo").mkdir()
    with RunWriter.create(tmp_path / "open.grpo", Settings(), origin=random_origin()):
        found = {entry.path.stem: entry for entry in entries(tmp_path)}
    assert set(found) == {"whole", "empty", "text", "open"}
    assert [name for name, entry in found.items() if entry.in_use] == ["open"]
    assert "empty" in str(found["empty"].error)
    assert "not a run file" in str(found["text"].error)
    assert found["whole"].error is None
    assert found["open"].meta is not None
    assert not found["open"].meta.ended


def test_a_folder_that_is_not_there_holds_nothing(tmp_path: Path) -> None:
    assert entries(tmp_path / "none") == []
    assert surplus(tmp_path / "none") == []


def test_what_is_too_many_is_named_oldest_first_and_stays(tmp_path: Path) -> None:
    for age in range(5):
        written(tmp_path / f"{age}.grpo", 1, age=age)
    assert surplus(tmp_path) == []
    assert [path.stem for path in surplus(tmp_path, keep=3)] == ["4", "3"]
    size = (tmp_path / "0.grpo").stat().st_size
    assert [path.stem for path in surplus(tmp_path, limit=2 * size)] == ["4", "3", "2"]
    assert len(entries(tmp_path)) == 5


def test_a_run_that_is_written_is_never_too_many(tmp_path: Path) -> None:
    written(tmp_path / "other.grpo", 1)
    with RunWriter.create(tmp_path / "open.grpo", Settings(), origin=random_origin()):
        os.utime(tmp_path / "open.grpo", (0, 0))
        os.utime(tmp_path / "open.grpo-wal", (0, 0))
        assert [path.stem for path in surplus(tmp_path, keep=0)] == ["other"]
        with pytest.raises(RunFileError, match="being written"):
            remove(tmp_path / "open.grpo")
    remove(tmp_path / "open.grpo")
    assert [path.name for path in tmp_path.iterdir()] == ["other.grpo"]


def test_a_run_is_found_by_its_id_whatever_its_name(tmp_path: Path) -> None:
    written(tmp_path / "a.grpo", 1)
    run_id = written(tmp_path / "b.grpo", 1)
    (tmp_path / "broken.grpo").write_bytes(b"?")
    (tmp_path / "b.grpo").rename(tmp_path / "renamed.grpo")
    assert find(tmp_path, run_id) == tmp_path / "renamed.grpo"
    assert find(tmp_path, "nobody") is None
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    assert find(elsewhere, run_id, hint=str(tmp_path / "renamed.grpo")) == tmp_path / "renamed.grpo"


def test_a_branch_of_a_branch_opens_every_update_while_its_parents_exist(tmp_path: Path) -> None:
    written(tmp_path / "root.grpo", 6)
    with RunReader.open(tmp_path / "root.grpo") as root:
        written(tmp_path / "middle.grpo", 3, parent=(root, 4))
    with RunReader.open(tmp_path / "middle.grpo") as middle:
        written(tmp_path / "leaf.grpo", 2, parent=(middle, 6))
    with RunReader.open(tmp_path / "leaf.grpo") as leaf:
        line = Lineage(leaf, tmp_path)
        assert all(same(line.step(number), random_step(number)) for number in range(1, 9))
        line.close()
        remove(tmp_path / "root.grpo")
        assert same(line.step(4), random_step(4))
        with pytest.raises(RunFileError, match="no longer exists"):
            line.step(3)
        with pytest.raises(RunFileError, match="There is no update 9"):
            line.step(9)
        line.close()
