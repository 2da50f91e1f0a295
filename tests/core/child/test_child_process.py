"""A child process: messages, limits, deadlines, and what happens when either side ends first."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from grpo_core.child.asking import Asked
from grpo_core.child.process import ChildProcess
from grpo_core.child.start import Limits, Main, command
from grpo_core.errors import Cancelled, GrpoError
from grpo_core.progress import unpolled
from tests.core.child import mains

ROOT = Path(__file__).parents[3]
LOST = "The process of this test has ended ({how}); ask again."
posix = pytest.mark.skipif(os.name != "posix", reason="signals and limits of this kind are elsewhere alone")


@pytest.fixture
def start() -> Iterator[Callable[..., ChildProcess]]:
    """Starts processes, and ends them after the test."""
    started: list[ChildProcess] = []

    def begin(main: Main, limits: Limits | None = None, **environment: str) -> ChildProcess:
        started.append(ChildProcess(main, limits=limits or Limits(), environment=environment))
        return started[-1]

    yield begin
    for each in started:
        each.kill()
        each.close()


@pytest.fixture
def asked() -> Iterator[Asked]:
    one = Asked(mains.answering, LOST)
    yield one
    one.kill()
    one.close()


def test_messages_of_json_and_bytes_go_there_and_back(start: Callable[..., ChildProcess]) -> None:
    process = start(mains.echo)
    assert process.receive(60) == {"is": "ready"}
    long = os.urandom(3_000_000)
    process.send({"is": "short"})
    process.send({"is": "long"}, [long, b""])
    assert process.receive(60) == {"was": "short"}
    assert process.receive(60) == {"was": "long", "blobs": [long, b""]}
    assert process.receive(0) is None and process.received() == []


@posix
def test_it_has_its_limits_and_the_parents_path_but_not_its_main_module(start: Callable[..., ChildProcess]) -> None:
    process = start(mains.tell, Limits(memory=1 << 40, files=77, nice=3), WORD="given")
    told = process.receive(60)
    assert told is not None
    assert told["limits"] == [1 << 40, 77]
    assert told["nice"] == os.nice(0) + 3
    assert told["word"] == "given" and told["main"] is None and told["path"] == sys.path


@posix
@pytest.mark.parametrize(
    ("main", "limits", "how"),
    [
        (mains.hungry, Limits(memory=1 << 29), "it ran out of memory"),
        (mains.busy, Limits(), "it used up its processor time"),
        (mains.failing, Limits(), "exit code 7"),
    ],
    ids=["memory", "processor", "by itself"],
)
def test_a_process_that_has_ended_says_why(
    main: Main, limits: Limits, how: str, start: Callable[..., ChildProcess]
) -> None:
    process = start(main, limits)
    assert process.close(60) == how and process.has_ended and process.pid is None


def test_a_process_that_does_not_read_a_long_message_is_killed(start: Callable[..., ChildProcess]) -> None:
    process = start(mains.silent)
    with pytest.raises(OSError, match=r"pipe|reset"):
        process.send({"is": "long"}, [bytes(50_000_000)], patience=0.2)
    assert process.close() == f"killed by signal {int(signal.SIGKILL)}"


def test_a_process_that_does_not_end_is_killed(start: Callable[..., ChildProcess]) -> None:
    process = start(mains.deaf)
    assert process.receive(60)
    assert process.close(0.1) == f"killed by signal {int(signal.SIGKILL)}"


def test_questions_are_answered_one_after_the_other_and_every_pass_is_counted(asked: Asked, tmp_path: Path) -> None:
    passes: list[None] = []
    assert list(asked.results("counted", [30], lambda: passes.append(None))) == list(range(30))
    assert len(passes) >= 30
    assert list(asked.results("written", [str(tmp_path / "a")], unpolled)) == [None]
    assert (tmp_path / "a").exists() and asked.usable and not asked.busy


def test_what_goes_wrong_there_is_raised_here_and_the_next_question_is_answered(asked: Asked) -> None:
    results = asked.results("wrong", ["It was wrong."], unpolled)
    assert next(results) == "begun"
    with pytest.raises(GrpoError, match=r"^It was wrong\.$"):
        next(results)
    with pytest.raises(RuntimeError, match="KeyError: 'nothing'"):
        list(asked.results("nothing", [], unpolled))
    assert list(asked.results("counted", [2], unpolled)) == [0, 1]


def test_a_question_that_is_given_up_leaves_the_process_to_the_next(asked: Asked) -> None:
    pid = asked.pid

    def refuse() -> None:
        raise Cancelled("enough")

    with pytest.raises(Cancelled, match="enough"):
        list(asked.results("endless", [], refuse))
    reading = asked.results("endless", [], unpolled)
    assert next(reading) == "begun"
    reading.close()  # type: ignore[attr-defined]
    assert list(asked.results("counted", [2], unpolled)) == [0, 1] and asked.pid == pid


def test_a_question_that_was_cancelled_without_a_wait_ends_with_that(asked: Asked) -> None:
    asked.ask("endless", [])
    asked.cancel()
    with suppress(Cancelled):
        while asked.busy:
            list(asked.heard())
        raise AssertionError("it has come to an end")
    assert not asked.busy and list(asked.results("counted", [1], unpolled)) == [0]


def test_one_that_does_not_give_up_is_killed(asked: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    reading = asked.results("stubborn", [], unpolled)
    assert next(reading) == "begun"
    asked.give_up(0.2)
    assert not asked.usable
    with pytest.raises(GrpoError, match=r"has ended \(killed by signal 9\); ask again"):
        list(reading)


def test_a_deadline_ends_the_process_and_is_said(asked: Asked) -> None:
    begun = time.monotonic()
    with pytest.raises(GrpoError, match=r"has ended \(it did not respond for 1\.5 seconds\); ask again"):
        list(asked.results("stubborn", [], unpolled, seconds=1.5))
    assert time.monotonic() - begun < 30 and asked.has_ended and not asked.usable


@posix
@pytest.mark.parametrize(("what", "how"), [("killed", "killed by signal 9"), ("memory", "it ran out of memory")])
def test_a_process_that_dies_over_a_question_is_one_sentence(what: str, how: str) -> None:
    asked = Asked(mains.answering, LOST, limits=Limits(memory=8 << 30))
    with pytest.raises(GrpoError) as lost:
        list(asked.results(what, [], unpolled))
    assert str(lost.value) == LOST.format(how=how) and not asked.usable


PARENT = """
import os, sys, time
from tests.core.child import mains
from grpo_core.child.process import ChildProcess

child = ChildProcess(mains.MAINS[sys.argv[1]])
print(*child.receive(60).get("pids", [child.pid]), flush=True)
time.sleep(600)
"""


@posix
@pytest.mark.parametrize(
    ("main", "stopped"),
    [
        ("echo", False),
        ("busy", False),
        ("deaf", True),
        pytest.param("answering", True, marks=pytest.mark.long),
        pytest.param("a_family", False, marks=pytest.mark.long),
        pytest.param("a_family", True, marks=pytest.mark.long),
    ],
)
def test_no_process_outlives_a_parent_that_is_killed(main: str, stopped: bool) -> None:
    if stopped and sys.platform != "linux":
        pytest.skip("nobody wakes a stopped process there")
    parent = subprocess.Popen([sys.executable, "-c", PARENT, main], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    children = [psutil.Process(int(pid)) for pid in parent.stdout.readline().split()]
    assert {child.pid for child in children} <= {
        child.pid for child in psutil.Process(parent.pid).children(recursive=True)
    }
    if stopped:
        for child in children:
            child.suspend()
    parent.kill()
    parent.wait()
    parent.stdout.close()
    _, alive = psutil.wait_procs(children, timeout=60)
    assert not alive


def test_the_packaged_program_is_its_own_child(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    packaged = command(mains.echo, 9, Limits(nice=3))
    assert packaged[0] == sys.executable
    script = "import sys; sys.argv[1:1] = ['--child-process']; from app.__main__ import main; sys.exit(main())"
    assert packaged[1:3] == ["--child-process", "tests.core.child.mains:echo"]
    monkeypatch.undo()
    with monkeypatch.context() as patch:
        patch.setattr(
            "grpo_core.child.process.command",
            lambda main, handle, limits, _: [sys.executable, "-c", script, *command(main, handle, limits)[-3:]],
        )
        patch.chdir(ROOT)
        process = ChildProcess(mains.echo)
    assert process.receive(60) == {"is": "ready"}
    process.kill()
    process.close()
