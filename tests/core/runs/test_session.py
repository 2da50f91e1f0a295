"""A session is packed into one file and unpacked completely, wherever it is written; a failed write leaves nothing."""

from __future__ import annotations

import os
import tempfile
import threading
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from grpo_core.errors import Cancelled, GrpoError
from grpo_core.runs import library
from grpo_core.runs.manifest import manifest_from, manifest_text
from grpo_core.runs.run_file import RunReader, RunWriter, copy_run
from grpo_core.runs.session import SUFFIX, Manifest, SessionError, SessionRun, save_session
from tests.core.runs.conftest import FULL_SESSION, largest_file
from tests.core.steps import random_steps
from tests.sessions import open_session, read_manifest


def test_what_was_saved_is_opened_and_the_copies_are_whole_files_of_their_own(session: Path, run: Path) -> None:
    before = session.read_bytes()
    folder = session.parent / "home" / "runs"
    manifest, (copy,) = open_session(session, folder)
    assert manifest == replace(FULL_SESSION, runs=(SessionRun(title="Twenty"),)) == read_manifest(session)
    assert copy.parent == folder
    with RunReader.open(run) as first, RunReader.open(copy) as second:
        assert (second.last, second.meta.ended) == (first.last, True)
        for step in range(1, 21):
            assert np.array_equal(second.step(step).logp, first.step(step).logp)
    with RunWriter.open(copy) as writer:  # training continues in the copy
        writer.append(list(random_steps(21))[-1])
    assert session.read_bytes() == before
    again, (other,) = open_session(session, folder)
    assert other != copy
    assert again == manifest
    assert [path.suffix for path in folder.iterdir()] == [".grpo", ".grpo"]


def test_a_session_without_runs_is_its_settings(tmp_path: Path) -> None:
    path = tmp_path / "empty.grposession"
    save_session(path, replace(FULL_SESSION, shown=None), [])
    manifest, copies = open_session(path, tmp_path / "runs")
    assert copies == ()
    assert manifest.settings == FULL_SESSION.settings


def test_a_branch_brings_along_the_runs_it_reaches_back_to(run: Path, tmp_path: Path) -> None:
    chain = [run]
    for number in (1, 2):
        child = tmp_path / f"branch {number}.grpo"
        with RunReader.open(chain[-1]) as parent:
            RunWriter.create(child, parent.meta.settings, parent=(parent, 12)).close()
        chain.append(child)
    path = tmp_path / "family.grposession"
    written = save_session(path, FULL_SESSION, chain[2:])
    assert [run.listed for run in written.runs] == [True, False, False]
    away = tmp_path / "away" / "runs"
    _, copies = open_session(path, away)
    for file in chain:
        file.unlink()
    lineage = library.Lineage(RunReader.open(copies[0]), away)
    assert lineage.step(3).step == 3
    lineage.close()
    lineage.reader.close()


def test_a_run_that_is_being_written_is_saved_as_far_as_it_is(run: Path, tmp_path: Path) -> None:
    with RunWriter.open(run) as writer:
        writer.append(list(random_steps(21))[-1])
        writer.commit()
        save_session(tmp_path / "live.grposession", FULL_SESSION, [run])
    _, (copy,) = open_session(tmp_path / "live.grposession", tmp_path / "runs")
    with RunReader.open(copy) as reader:
        assert (reader.last, reader.meta.ended) == (21, True)


def test_nothing_is_left_beside_the_file_and_nothing_of_the_clock_in_it(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("time.time", lambda: -1e9)  # the clock is before 1970, which a zip cannot represent
    room = tmp_path / "room"
    room.mkdir()
    for name in ("a", "b"):
        save_session(room / name, FULL_SESSION, [run])
    assert sorted(path.name for path in room.iterdir()) == ["a", "b"]
    manifests = [zipfile.ZipFile(room / name).read("manifest.json") for name in ("a", "b")]
    assert manifests[0] == manifests[1]


def test_saving_and_opening_tell_how_much_is_done(run: Path, tmp_path: Path) -> None:
    fractions: list[float] = []
    path = tmp_path / "first.grposession"
    copy = tmp_path / "second.grpo"
    copy_run(run, copy)
    save_session(path, Manifest(), [run, copy], fractions.append)
    saving, fractions[:] = [*fractions], []
    open_session(path, tmp_path / "opened", fractions.append)
    for each in (saving, fractions):
        assert each == sorted(each)
        assert any(0 < fraction < 0.6 for fraction in each) and each[-1] > 0.9


def stop(fraction: float) -> None:
    raise Cancelled


def test_cancelling_leaves_nothing(session: Path, run: Path) -> None:
    with pytest.raises(Cancelled):
        open_session(session, session.parent / "runs", stop)
    assert not list((session.parent / "runs").iterdir())
    before = session.read_bytes()
    with pytest.raises(Cancelled):
        save_session(session, FULL_SESSION, [run], stop)
    assert session.read_bytes() == before
    assert sorted(path.name for path in session.parent.iterdir()) == ["lecture.grposession", "run.grpo", "runs"]


# -- where it is written ---------------------------------------------------------------------------------------------


def test_a_full_disk_keeps_the_old_session_and_leaves_no_piece(session: Path, run: Path) -> None:
    before, there = session.read_bytes(), sorted(session.parent.iterdir())
    for limit in (100, len(before) // 2):
        with largest_file(limit), pytest.raises(GrpoError) as refused:
            save_session(session, FULL_SESSION, [run])
        assert "cannot be written" in str(refused.value)
        with largest_file(limit), pytest.raises(GrpoError):
            open_session(session, session.parent / "runs")
    assert session.read_bytes() == before
    assert sorted(session.parent.iterdir()) == sorted([*there, session.parent / "runs"])
    assert not list((session.parent / "runs").iterdir())


def test_a_folder_that_cannot_be_written_says_so(session: Path, run: Path, permissions_count: None) -> None:
    locked = session.parent / "locked"
    locked.mkdir(mode=0o555)
    for action in (lambda: save_session(locked / "x", FULL_SESSION, [run]), lambda: open_session(session, locked)):
        with pytest.raises(GrpoError, match="read-only"):
            action()
    assert not list(locked.iterdir())


def test_places_that_cannot_be_are_told(session: Path, run: Path) -> None:
    cases: list[tuple[Callable[[], object], str]] = [
        (lambda: save_session(session.parent / "no" / "x", FULL_SESSION, [run]), "There is no folder"),
        (lambda: save_session(session.parent, FULL_SESSION, [run]), "is a folder"),
        (lambda: save_session(session.parent / ("x" * 400), FULL_SESSION, [run]), "cannot be written"),
        (lambda: save_session(session, FULL_SESSION, [session.parent / "gone.grpo"]), "There is no run file"),
        (lambda: open_session(session, run / "below a file"), "cannot be written"),
    ]
    for action, words in cases:
        with pytest.raises(GrpoError, match=words):
            action()


def test_long_and_foreign_names(run: Path, tmp_path: Path) -> None:
    deep = tmp_path.joinpath(*["ein sehr langer Ordner – 東京 " + "ü" * 30] * 3)
    deep.mkdir(parents=True)
    path = deep / f"{'Lösung' * 20}{SUFFIX}"
    save_session(path, FULL_SESSION, [run])
    _, (copy,) = open_session(path, deep / "läufe")
    with RunReader.open(copy) as reader:
        assert reader.last == 20


def test_the_temporary_folder_is_not_used(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run can be larger than the space that the system has for temporary files."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "not there"))
    save_session(tmp_path / "a.grposession", FULL_SESSION, [run])
    open_session(tmp_path / "a.grposession", tmp_path / "runs")


def test_two_savers_of_one_name_leave_one_whole_session(run: Path, tmp_path: Path) -> None:
    path, failures = tmp_path / "x.grposession", []

    def save() -> None:
        try:
            save_session(path, FULL_SESSION, [run])
        except GrpoError as error:
            failures.append(error)

    threads = [threading.Thread(target=save) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(failures) < 3
    assert open_session(path, tmp_path / "runs")[0].step == 12


def test_the_manifest_survives_its_own_text() -> None:
    assert manifest_from(manifest_text(FULL_SESSION).encode(), "x") == FULL_SESSION
    with pytest.raises(SessionError, match="notes is"):
        Manifest(notes="x" * 1_000_001)


def test_the_folder_of_a_copy_is_made(session: Path) -> None:
    open_session(session, session.parent / "a" / "b")
    assert os.listdir(session.parent / "a" / "b")
