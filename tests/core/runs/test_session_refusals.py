"""A file that is not a session, or a damaged one, is refused with a message, and leaves nothing behind."""

from __future__ import annotations

import json
import struct
import zipfile
from pathlib import Path
from typing import Any

import pytest

from grpo_core.runs.manifest import FORMAT, VERSION
from grpo_core.runs.session import SessionError
from tests.sessions import open_session


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
