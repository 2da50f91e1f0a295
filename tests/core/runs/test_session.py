"""A session is packed into one file and unpacked completely; a failed write, or a file that is none, leaves nothing."""

from __future__ import annotations

import json
import struct
import tempfile
import threading
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from grpo_core.errors import Cancelled, GrpoError
from grpo_core.runs import library
from grpo_core.runs.manifest import FORMAT, VERSION, manifest_from, manifest_text
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


def packed(path: Path, entries: dict[str, bytes | str], method: int = zipfile.ZIP_DEFLATED) -> Path:
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, content in entries.items():
            archive.writestr(name, content)
    return path


def manifest(**changes: Any) -> str:
    return json.dumps({"format": FORMAT, "format_version": VERSION, "runs": [], **changes})


def refusal(path: Path, folder: Path | None = None) -> str:
    with pytest.raises(SessionError) as refused:
        open_session(path, folder or path.parent / "runs")
    text = str(refused.value)
    assert text.endswith(".")
    assert path.name in text
    assert not list((folder or path.parent / "runs").glob("*"))
    return text


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "is empty"),
        (b"hello", "not a session file"),
        (b"PK\3\4" + bytes(40), "not a session file"),
        (b"SQLite format 3\0" + bytes(100), "not a session file"),
    ],
)
def test_what_is_no_zip_says_so(tmp_path: Path, content: bytes, words: str) -> None:
    path = tmp_path / "x.grposession"
    path.write_bytes(content)
    assert words in refusal(path)


def test_a_missing_file_and_a_folder_say_so(tmp_path: Path) -> None:
    assert "There is no session file" in refusal(tmp_path / "gone.grposession")
    (tmp_path / "folder.grposession").mkdir()
    assert "is a folder" in refusal(tmp_path / "folder.grposession")


@pytest.mark.parametrize(
    "name", ["../evil.grpo", "/etc/evil", "runs/../../evil", "C:\\evil", "runs\\1.grpo", "a/../.."]
)
def test_a_name_that_points_outside_is_refused(tmp_path: Path, name: str) -> None:
    path = packed(tmp_path / "x.grposession", {"manifest.json": manifest(), name: b"x"})
    assert "points outside" in refusal(path)
    assert not (tmp_path / "evil.grpo").exists()


@pytest.mark.parametrize(
    ("entries", "words"),
    [
        ({"readme.txt": b"hi"}, "without a manifest.json"),
        ({"manifest.json": b"{"}, "not JSON"),
        ({"manifest.json": b"[" * 100_000}, "not JSON"),
        ({"manifest.json": b"\xff\xfe"}, "not JSON"),
        ({"manifest.json": b"[]"}, "not the manifest of a GRPO Lab session"),
        ({"manifest.json": b'{"format": "zip"}'}, "not the manifest of a GRPO Lab session"),
        ({"manifest.json": manifest(format_version=VERSION + 1)}, "newer version"),
        ({"manifest.json": manifest(format_version="1")}, "does not name its format"),
        ({"manifest.json": manifest(format_version=True)}, "does not name its format"),
        ({"manifest.json": manifest(runs=[{"title": "A"}])}, "run 1 is not in it"),
        ({"manifest.json": manifest(runs={"title": "A"})}, "runs is"),
        ({"manifest.json": manifest(runs=[{"title": 3}])}, "title is 3"),
        ({"manifest.json": manifest(runs=[{"title": "A", "listed": 1}])}, "listed is 1"),
        ({"manifest.json": manifest(runs=[{}] * 300)}, "at most 200 runs"),
        ({"manifest.json": manifest(shown=0.5)}, "shown is 0.5"),
        ({"manifest.json": manifest(shown=3)}, "shown is 3"),
        ({"manifest.json": manifest(step=-1)}, "step is -1"),
        ({"manifest.json": manifest(step=10**400)}, "step is"),
        ({"manifest.json": manifest(created=float("nan"))}, "created is nan"),
        ({"manifest.json": manifest(notes=None)}, "notes is None"),
        ({"manifest.json": manifest(layout="a\0b")}, "layout is"),
        ({"manifest.json": manifest(locked="objective.beta")}, "locked is objective.beta"),
        ({"manifest.json": manifest(hidden=[1])}, "hidden is 1"),
        ({"manifest.json": manifest(panels=["p"] * 501)}, "panels is 501 entries"),
        ({"manifest.json": manifest(settings={"objective": {"beta": -1}})}, "beta cannot be -1"),
        ({"manifest.json": manifest(settings=[])}, "cannot be used"),
        ({"manifest.json": b"0" * 10_000_000}, "at most 4,000,000 are allowed"),
        ({"manifest.json": manifest(), **{f"runs/{n}": b"" for n in range(1001)}}, "1,002 files"),
    ],
)
def test_a_manifest_that_cannot_be_used_says_what_is_wrong(
    tmp_path: Path, entries: dict[str, bytes | str], words: str
) -> None:
    assert words in refusal(packed(tmp_path / "x.grposession", entries))


def test_what_a_newer_version_added_is_left_alone(tmp_path: Path) -> None:
    path = packed(tmp_path / "x.grposession", {"manifest.json": manifest(colour="red"), "extra/readme.txt": b"hi"})
    assert open_session(path, tmp_path / "runs")[0].runs == ()


def test_an_entry_that_would_fill_the_disk_is_refused_before_it_is_unpacked(tmp_path: Path) -> None:
    bomb: dict[str, bytes | str] = {"manifest.json": manifest(runs=[{"title": "A"}]), "runs/1.grpo": bytes(30_000_000)}
    assert "which no run does" in refusal(packed(tmp_path / "x.grposession", bomb))


def test_a_run_larger_than_the_disk_is_refused(session: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = type("usage", (), {"free": 100_000_500})
    monkeypatch.setattr("shutil.disk_usage", lambda path: usage)
    assert "free some space first" in refusal(session)


def test_a_packing_that_sessions_do_not_use_is_refused(tmp_path: Path) -> None:
    path = packed(tmp_path / "x.grposession", {"manifest.json": manifest()}, zipfile.ZIP_BZIP2)
    assert "compressed in a way" in refusal(path)
    whole = bytearray(packed(path, {"manifest.json": manifest()}).read_bytes())
    central = whole.index(b"PK\1\2")
    struct.pack_into("<H", whole, central + 8, 1)  # encrypted, says the directory
    path.write_bytes(whole)
    assert "compressed in a way" in refusal(path)


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_two_files_of_one_name_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.grposession"
    with zipfile.ZipFile(path, "w") as archive:
        for _ in range(2):
            archive.writestr("manifest.json", manifest())
    assert "two files of the same name" in refusal(path)


@pytest.mark.parametrize("content", [b"", b"hello", b"SQLite format 3\0" + bytes(400)])
def test_a_run_inside_that_is_none_leaves_nothing_behind(run: Path, tmp_path: Path, content: bytes) -> None:
    entries = {"runs/1.grpo": run.read_bytes(), "runs/2.grpo": content}
    two = manifest(runs=[{"title": "A"}, {"title": "B"}])
    path = packed(tmp_path / "x.grposession", {"manifest.json": two, **entries})
    assert "because of run 2" in refusal(path)


def test_a_session_cut_short_anywhere_says_so(session: Path) -> None:
    whole = session.read_bytes()
    for length in range(1, len(whole), len(whole) // 40):
        session.write_bytes(whole[:length])
        refusal(session)


def test_a_byte_changed_in_a_run_is_noticed(session: Path) -> None:
    whole = bytearray(session.read_bytes())
    whole[len(whole) // 2] ^= 0xFF
    session.write_bytes(whole)
    assert "damaged" in refusal(session)
