"""Foreign files are read by a process that can die: same updates and messages, a sandbox, and a replacement process."""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import sqlite3
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

from grpo_core.child.asking import PATIENCE, Asked
from grpo_core.errors import Cancelled, GrpoError, NotRecordedError, RunFileError
from grpo_core.foreign import probes
from grpo_core.foreign.line import LIMITS, LateError, Line, ReaderProcess, space_of
from grpo_core.foreign.readers import IN_SIGHT, Readers, probed, recorded
from grpo_core.foreign.recording import Completions, Source
from grpo_core.foreign.source import RemoteSource
from grpo_core.foreign.walls import version
from grpo_core.progress import unpolled
from grpo_core.runs.layout import encoded
from grpo_core.trainers.hf.reading import read_model
from grpo_core.trainers.importers import open_source
from grpo_core.trainers.recorded_jobs import examination
from tests.core.foreign.mains import LIES, fill, lie, serve
from tests.core.trainers.sources import AGENT, SOURCES, source_path
from tests.core.trainers.trace_files import DATA, copied
from tests.fuzz.hostile_models import changed
from tests.fuzz.hostile_sources import converted
from tests.fuzz.readers import good_run, good_session
from tests.sessions import open_session

NOBODY = 65534
WALLED = pytest.mark.skipif(version() == 0, reason="this kernel has no Landlock")


@pytest.fixture
def readers() -> Iterator[Readers]:
    with closing(Readers(own_process=True)) as made:
        yield made


@pytest.fixture
def in_sight() -> Iterator[Readers]:
    """The readers of a window."""
    with closing(Readers(own_process=True, window=True)) as made:
        yield made


@pytest.fixture(params=[None, NOBODY], ids=["the tests' user", "nobody"])
def user(request: pytest.FixtureRequest) -> int | None:
    """The number of a user as whom a process runs, None for the one of the tests."""
    if request.param is not None and os.geteuid() != 0:
        pytest.skip("only root can become another user")
    found: int | None = request.param
    return found


def test_an_agents_turns_and_metrics_come_through_the_process(readers: Readers) -> None:
    here, there = open_source(AGENT), readers.open(AGENT)
    assert there.completions(1).trajectories == here.completions(1).trajectories is not None
    assert len(there.completions(1).metric_names) == 2


@pytest.fixture
def asked() -> Iterator[Asked]:
    limits = dataclasses.replace(LIMITS, memory=1 << 30)
    process = Asked(serve, "run.db could not be read ({how}).", limits=limits, error=RunFileError)
    process.await_ready()
    yield process
    process.kill()
    process.close()


def table_of(source: Source, position: int) -> dict[str, Any] | str:
    try:
        table = source.completions(position)
    except NotRecordedError as error:
        return str(error)
    return {field.name: getattr(table, field.name) for field in dataclasses.fields(Completions)}


def step_of(source: Source, position: int) -> object:
    try:
        step = source.step(position)
    except NotRecordedError as error:
        return str(error)
    return encoded(step), step.settings, step.label, step.prompt_texts, step.completion_texts


@pytest.mark.parametrize("name", ["grpo", *SOURCES])
def test_the_updates_are_those_that_are_read_here(name: str, readers: Readers, tmp_path: Path) -> None:
    path = DATA / name if name == "grpo" else source_path(name, tmp_path)
    there, here = readers.open(path), open_source(path)
    assert isinstance(there, RemoteSource)
    for fact in ("path", "title", "settings", "partial", "labels", "siblings", "vocabulary"):
        found, right = getattr(there, fact), getattr(here, fact)
        assert found == right or list(found) == list(right), fact
    for position in range(1, len(here) + 1):
        assert step_of(there, position) == step_of(here, position)
        np.testing.assert_equal(table_of(there, position), table_of(here, position))
        assert list(there.reports(position)) == list(here.reports(position))
        assert there.stamp(position) == tuple(here.stamp(position))
    assert list(there.notes) == list(here.notes)


def test_an_examination_is_the_one_that_is_made_here(readers: Readers) -> None:
    path = DATA.parent / "diseased" / "kl_explodes"
    assert list(readers.results("examination", path, poll=unpolled)) == list(examination(str(path), poll=unpolled))


def test_what_is_written_meanwhile_is_a_source_of_its_own(readers: Readers, tmp_path: Path) -> None:
    folder = copied("grpo", tmp_path)
    index = folder / "rank0" / "attempt0" / "index.jsonl"
    lines = index.read_text("utf-8").splitlines(keepends=True)
    index.write_text(lines[0], "utf-8")
    before = readers.open(folder)
    assert isinstance(before, RemoteSource)
    stamp, nothing, _ = before.refreshed(before.refreshed(None)[0])
    assert nothing is None
    index.write_text("".join(lines), "utf-8")
    _, after, goes_on = before.refreshed(stamp)
    assert after is not None and goes_on
    assert (len(before), len(after)) == (1, 2)
    assert after.step(2).label == 4 and before.step(1).label == 2


@pytest.mark.skipif(sys.platform == "win32", reason="no signals")
def test_a_process_that_was_killed_is_said_once_and_the_next_question_starts_another(readers: Readers) -> None:
    source = readers.open(DATA / "grpo")
    first = source.step(1)
    (process,) = (one for held in readers.lines for one in held.processes)
    assert process.pid is not None
    os.kill(process.pid, signal.SIGSTOP)
    killer = threading.Timer(0.2, os.kill, (process.pid, signal.SIGKILL))
    killer.start()
    with pytest.raises(
        RunFileError, match=r"^grpo could not be read: .*killed by signal 9.*when the file is requested again\.$"
    ):
        source.step(2)
    assert encoded(source.step(1)) == encoded(first)


def test_a_source_that_became_another_while_nobody_looked_is_refused(readers: Readers, tmp_path: Path) -> None:
    folder = copied("grpo", tmp_path)
    source = readers.open(folder)
    assert isinstance(source, RemoteSource)
    source.close()
    index = folder / "rank0" / "attempt0" / "index.jsonl"
    index.write_text(index.read_text("utf-8").splitlines(keepends=True)[1], "utf-8")
    with pytest.raises(RunFileError, match="has changed since it was opened"):
        source.step(1)


@pytest.mark.parametrize("busy", [False, True], ids=["idle", "busy"])
def test_the_windows_thread_waits_two_seconds_at_most(in_sight: Readers, busy: bool) -> None:
    source, found = in_sight.open(DATA / "grpo"), list[int | None]()
    (line,) = in_sight.lines
    (process,) = line.processes
    assert process.pid is not None
    os.kill(process.pid, signal.SIGSTOP)
    thread = threading.Thread(target=lambda: found.append(source.step(1).label))
    if busy:  # another thread is served first
        served = threading.Event()
        line.poll = served.set
        thread.start()
        assert served.wait(60)
    begun = time.monotonic()
    with pytest.raises(LateError, match="grpo takes longer to read than the window can wait"):
        source.step(1)
    with pytest.raises(LateError):
        source.step(2)  # at once: several panels ask for one update
    assert time.monotonic() - begun < 2 * IN_SIGHT
    if busy:
        os.kill(process.pid, signal.SIGCONT)
    else:
        thread.start()  # with a new process
    thread.join(60)
    assert found == [2] and source.step(2).label == 4


def test_a_question_that_is_given_up_ends_its_process_at_once() -> None:
    begun = time.monotonic()

    def poll() -> None:
        if time.monotonic() - begun > 1:
            raise Cancelled("enough")

    with pytest.raises(Cancelled):
        list(_endless(poll))
    assert time.monotonic() - begun < 1 + PATIENCE, "it is killed, not waited for"


def _endless(poll: Any) -> Iterator[object]:
    process = Asked(serve, "{how}")
    try:
        yield from process.results("fails", ("silent",), lambda: _or_kill(process, poll))
    finally:
        process.close()


def _or_kill(process: Asked, poll: Any) -> None:
    try:
        poll()
    except BaseException:
        process.kill()
        raise


@pytest.mark.parametrize(
    ("kind", "sentence"),
    [
        ("missing", r"^/nowhere/at all cannot be read: No such file or directory\.$"),
        ("odd", r"^The recording cannot be read: .*ZeroDivisionError: by zero\)\.$"),
        ("memory", r"^run.db could not be read \(it ran out of memory\)\.$"),
        ("killed", r"^run.db could not be read \(killed by signal 9\)\.$"),
        ("silent", r"^run.db could not be read \(it did not respond for 1 seconds\)\.$"),
    ],
)
@pytest.mark.skipif(sys.platform == "win32", reason="no signals, no limits")
def test_whatever_goes_wrong_there_is_a_sentence(asked: Asked, kind: str, sentence: str) -> None:
    with pytest.raises(RunFileError, match=sentence):
        list(asked.results("fails", (kind,), unpolled, seconds=1.0))


@WALLED
@pytest.mark.parametrize("source", ["source.db", "source.grpo"])
def test_the_process_reaches_the_source_and_its_room_and_nothing_else(
    source: str, asked: Asked, tmp_path: Path
) -> None:
    for name in (source, f"{source}-wal", "outside.db"):
        (tmp_path / name).write_bytes(b"x")
    room = tmp_path / "room"
    room.mkdir()
    arguments = [str(place) for place in (tmp_path / source, room, tmp_path / "outside.db")]
    (became,) = asked.results("prisoner", arguments, unpolled)
    assert {name for name, what in became.items() if what == "done"} == {
        "read the source",
        "write to its room",
        "import",
    }
    assert {what for name, what in became.items() if name != "enclosed"} == {"done", "refused"}
    assert became["enclosed"] == "True" and "cannot access other files" in probes.said()


@WALLED
def test_no_thread_of_the_process_reaches_anything_else(user: int | None, asked: Asked, tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    for name in ("source.db", "secret"):
        (tmp_path / name).write_bytes(b"x")
    (outcomes,) = asked.results("threads", (user, str(tmp_path / "secret"), str(tmp_path / "copy")), unpolled)
    assert (outcomes.pop("before"), outcomes.pop("enclosed")) == (["done"], ["True"])
    assert len(outcomes) > (2 if user else 3), "main, watchdog, one of Python and those of pyarrow"
    assert set(map(tuple, outcomes.values())) == {("refused", "refused")}, outcomes


@WALLED
def test_no_probe_leaves_the_sandbox(user: int | None, asked: Asked, tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    (outcomes,) = asked.results("probing", (user, *probe_files(tmp_path)), unpolled)
    assert len(outcomes) > 30 and probes.failures(outcomes) == [], probes.table(outcomes)


@WALLED
def test_a_process_that_can_connect_can_do_nothing_else(asked: Asked, tmp_path: Path) -> None:
    (outcomes,) = asked.results("connecting", probe_files(tmp_path), unpolled)
    assert probes.failures(outcomes) == ["open a socket", "open a pair of sockets"], probes.table(outcomes)


def test_the_probes_succeed_where_nothing_refuses_them(asked: Asked, tmp_path: Path) -> None:
    (outcomes,) = asked.results("open_all", probe_files(tmp_path)[:2], unpolled)
    refused = {name for name, outcome in outcomes.items() if outcome == probes.REFUSED}
    assert refused <= {"set an attribute", "read the environment", "trace"}, probes.table(outcomes)


def probe_files(folder: Path) -> tuple[str, str, str]:
    """Create a source, a secret and a folder to write to, which anybody can read, and return their paths."""
    source, secret, room = folder / "source.db", folder / "user" / "secret", folder / "room"
    for place in (secret.parent, room):
        place.mkdir()
        place.chmod(0o777)
    for file in (source, secret, secret.with_name("deleted")):
        file.write_bytes(b"secret")
        file.chmod(0o666)
    return str(source), str(secret), str(room)


@WALLED
def test_the_process_of_a_file_shows_that_its_sandbox_holds() -> None:
    assert probes.failures(probed()) == []


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="no such list of open files")
def test_the_process_has_neither_the_terminal_nor_the_shell_s_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_SECRET_TOKEN", "x")
    process = ReaderProcess()
    try:
        process.await_ready()
        files = {str(Path(f"/proc/{process.pid}/fd/{number}").readlink()) for number in range(3)}
        assert all(file.startswith("pipe:") or file == os.devnull for file in files)
        variables = Path(f"/proc/{process.pid}/environ").read_bytes()
        assert b"MY_SECRET_TOKEN" not in variables and b"HOME=" in variables
    finally:
        process.kill()
        process.close()


@pytest.mark.parametrize(
    ("kind", "sentence"),
    [("one file", "File too large"), ("many files", r"run\.db .* \(it wrote more than 1 MB to its")],
)
@pytest.mark.skipif(sys.platform == "win32", reason="no limit on the size of a file")
def test_a_process_cannot_fill_the_disk(kind: str, sentence: str, tmp_path: Path) -> None:
    room = tmp_path / "room"
    room.mkdir()
    process = ReaderProcess(fill)
    try:
        process.read(tmp_path / "run.db", room, 1_000_000)
        with pytest.raises(RunFileError, match=sentence):
            list(process.results("converted_run", (str(room), kind), unpolled))
        assert space_of(room) < 200_000_000
    finally:
        process.kill()
        process.close()


@pytest.mark.parametrize("name", LIES)
def test_a_lie_of_the_process_ends_in_a_sentence_with_the_file_s_name(name: str, tmp_path: Path) -> None:
    line = Line(tmp_path / "run.db", None, lambda: ReaderProcess(lie), lambda: None, 2.0, unpolled)
    before = psutil.Process().memory_info().rss
    with pytest.raises(RunFileError, match=r"^run\.db could not be read: "):
        line.ask("completions", name)
    assert psutil.Process().memory_info().rss - before < 300 << 20
    line.close()


@WALLED
def test_a_process_with_a_second_thread_is_not_enclosed(asked: Asked, tmp_path: Path) -> None:
    (tmp_path / "source.db").write_bytes(b"x")
    sentence = r"^source\.db was not opened: .* already had 2 threads\.$"
    with pytest.raises(RunFileError, match=sentence):
        list(asked.results("late", (str(tmp_path / "source.db"),), unpolled))


@WALLED
def test_files_that_a_folder_links_to_are_read(readers: Readers, tmp_path: Path) -> None:
    folder = copied("grpo", tmp_path)
    file = folder / "rank0" / "attempt0" / "step_00000001.parquet"
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    file.rename(elsewhere / "blob")
    file.symlink_to(elsewhere / "blob")
    assert readers.open(folder).step(1).label == 2


def test_a_file_that_was_replaced_is_read_anew(readers: Readers, tmp_path: Path) -> None:
    path = source_path("trackio", tmp_path)
    source = readers.open(path)
    fresh = tmp_path / "fresh"
    fresh.write_bytes(path.read_bytes())
    fresh.replace(path)
    assert len(source.completions(1).prompts) == 8


def test_a_database_with_a_log_is_read_from_a_copy(readers: Readers, tmp_path: Path) -> None:
    path = source_path("trackio", tmp_path)
    with closing(sqlite3.connect(path)) as writer:
        writer.execute("PRAGMA journal_mode=WAL")
        writer.execute("UPDATE metrics SET timestamp = 'later'")
        writer.commit()
        log = path.with_name(path.name + "-wal")
        beside = {file.name: file.read_bytes() for file in (path, log)}
        room = tmp_path / "rooms"
        source = readers.open(path, index=room)
        assert len(source.completions(1).prompts) == 8
        assert {file.name: file.read_bytes() for file in (path, log)} == beside


def test_prompts_are_those_of_the_file(readers: Readers, tmp_path: Path) -> None:
    path = tmp_path / "prompts.csv"
    path.write_text('prompt,answer\n1+1=,2\n2+2=,"a+b"\n', "utf-8")
    read = list(readers.prompts(path, checker="regex", longest=None, poll=unpolled))
    assert [(prompt.text, prompt.answer) for prompt in read] == [("1+1=", "2"), ("2+2=", "a+b")]
    path.write_text("prompt,answer\n1+1=,(\n", "utf-8")
    with pytest.raises(GrpoError, match=r"Line 2 of prompts\.csv: the answer cannot be used"):
        list(readers.prompts(path, checker="regex", longest=None, poll=unpolled))


def test_a_session_s_runs_come_into_the_folder(readers: Readers, tmp_path: Path) -> None:
    path = tmp_path / "x.grposession"
    path.write_bytes(good_session())
    folder, other = tmp_path / "runs", tmp_path / "other"
    manifest, copies = readers.session(path, folder, unpolled)
    right, expected = open_session(path, other)
    assert manifest == right
    assert [copy.read_bytes() for copy in copies] == [copy.read_bytes() for copy in expected]
    assert sorted(folder.iterdir()) == sorted(copies)
    path.write_bytes(good_session()[:500])
    with pytest.raises(GrpoError, match=r"x\.grposession"):
        readers.session(path, folder, unpolled)
    assert sorted(folder.iterdir()) == sorted(copies)


def test_a_run_file_from_outside_is_looked_at(readers: Readers, tmp_path: Path) -> None:
    path = tmp_path / "run.grpo"
    path.write_bytes(good_run())
    assert not readers.is_converted(path, poll=unpolled)
    path.write_bytes(b"SQLite format 3\0" + bytes(5000))
    with pytest.raises(GrpoError, match=r"run\.grpo"):
        readers.is_converted(path, poll=unpolled)


def test_a_command_s_source_ends_with_it() -> None:
    with recorded(DATA / "grpo", unpolled) as source:
        assert isinstance(source, RemoteSource) and len(source) == 2
    assert json.loads(source.settings.to_json())
    with pytest.raises(RunFileError, match="The program is closing"):
        source.step(1)


def test_a_spare_process_is_there_for_the_next_source(in_sight: Readers) -> None:
    in_sight.warm()
    deadline = time.monotonic() + 60
    while in_sight.spare is None and time.monotonic() < deadline:
        time.sleep(0.01)
    spare = in_sight.spare
    assert isinstance(spare, ReaderProcess)
    source = in_sight.open(DATA / "grpo")
    assert len(source) == 2
    assert [one for held in in_sight.lines for one in held.processes] == [spare]


def test_of_a_million_notes_a_few_are_shown(readers: Readers, tmp_path: Path) -> None:
    notes = readers.open(converted(tmp_path, "notes", ["A note."] * 1_000_000)).notes
    assert len(notes) == 51 and notes[-1] == "There are 950 more notes like these."


def test_a_refusal_that_repeats_a_million_values_is_cut_short(readers: Readers, tmp_path: Path) -> None:
    with pytest.raises(GrpoError) as refused:
        read_model(readers, changed(tmp_path, "config.json", "vocab_size", [1] * 1_000_000))
    assert len(str(refused.value)) < 2_100


def test_whatever_is_said_of_a_file_is_cut_short(asked: Asked) -> None:
    with pytest.raises(RunFileError, match=r"^a{1999}…$"):
        list(asked.results("fails", ("long",), unpolled))
