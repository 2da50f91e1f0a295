"""A run examined while its trainer writes it: new findings are reported at once, to whoever requested them."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from grpo_core.commands.cli import main
from grpo_core.errors import RunFileError
from grpo_core.foreign.recording import Source
from grpo_core.trainers.health import diagnose
from grpo_core.trainers.health.grade import Grade
from grpo_core.trainers.importers import open_source
from grpo_core.trainers.watching import AUDIT, Watch
from tests.core.trainers.trace_files import DATA, Written

DISEASED = DATA.parent / "diseased"


def test_a_planted_fault_is_found_at_the_first_look_and_named_at_the_second(tmp_path: Path) -> None:
    run = Written(DATA / "fault_clip", tmp_path, 1)
    watch = Watch(open_source(run.folder))
    first = list(watch.look())
    assert AUDIT in [event.name for event in first], "the first update departs already"
    run.write(2)
    (event,) = (event for event in watch.look() if event.name == AUDIT)
    assert "The clip range was 0.1 below and 0.1 above." in event.line and event.grade is Grade.SERIOUS
    run.write(3)
    assert AUDIT not in [event.name for event in watch.look()], "nothing is said twice"
    assert watch.worst is Grade.SERIOUS and len(watch.source) == 3
    assert list(watch.look()) == [], "nothing was written"


def test_a_finding_that_appears_while_the_run_is_written_is_said_then(tmp_path: Path) -> None:
    run = Written(DISEASED / "rate_too_high", tmp_path, 4)
    watch = Watch(open_source(run.folder))
    before = {event.name for event in watch.look()}
    assert "entropy_collapse" not in before
    run.write(12)
    begun = {event.name: event for event in watch.look() if not event.ended}
    collapse = begun["entropy_collapse"]
    assert collapse.began is not None and collapse.began <= collapse.step == watch.source.labels[-1]
    assert collapse.as_json("runs/a")["severity"] == "serious" and "\n" not in collapse.line


def test_a_run_that_begins_anew_is_judged_anew_and_what_it_had_has_ended(tmp_path: Path) -> None:
    run = Written(DISEASED / "rate_too_high", tmp_path, 12)
    watch = Watch(open_source(run.folder))
    assert "entropy_collapse" in {event.name for event in watch.look()}
    run.write(4)
    assert "entropy_collapse" in {event.name for event in watch.look() if event.ended}
    assert watch.diagnosis is not None and watch.diagnosis.updates == 4


def test_watching_says_what_a_diagnosis_says(tmp_path: Path) -> None:
    run = Written(DISEASED / "rate_too_high", tmp_path, 1)
    watch = Watch(open_source(run.folder))
    for updates in (1, 2, 5, 12):
        run.write(updates)
        list(watch.look())
    assert watch.diagnosis == diagnose(open_source(run.folder))


def test_a_healthy_run_ends_with_exit_code_0(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["watch", str(DATA / "grpo"), "--every", "0.05", "--idle", "0.01"]) == 0
    assert "2 updates were watched" in capsys.readouterr().out


def test_events_go_to_a_log_and_to_a_command_and_end_the_watch_where_that_is_asked_for(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    log, taken = tmp_path / "events.jsonl", tmp_path / "taken.json"
    code = "import sys; open(sys.argv[1], 'a').write(sys.stdin.read() + '\\n'); sys.exit('no; rm -rf')"
    arguments = ["watch", str(DATA / "fault_clip"), "--every", "0.05", "--stop-on", "serious", "--log", str(log)]
    assert main([*arguments, "--on-finding", sys.executable, "-c", code, str(taken)]) == 1
    out, err = capfd.readouterr()
    logged = [json.loads(line) for line in log.read_text("utf-8").splitlines()]
    assert [json.loads(line) for line in taken.read_text("utf-8").splitlines()] == logged
    assert {one["check"] for one in logged} >= {AUDIT} and len(logged) == len(out.splitlines()) - 1
    assert "ended with exit code 1. no; rm -rf" in err, "a command that fails is said, and ends nothing"


@pytest.mark.parametrize(
    ("more", "told"),
    [
        (["--on-finding", "/nowhere/tell"], "could not be started"),
        (["--log", "/nowhere/events.jsonl"], "could not be written"),
    ],
)
def test_a_command_or_a_log_that_cannot_be_had_is_said(
    more: list[str], told: str, capfd: pytest.CaptureFixture[str]
) -> None:
    code = main(["watch", str(DATA / "fault_clip"), "--every", "0.05", "--idle", "0.01", *more])
    assert told in capfd.readouterr().err
    assert code == (2 if more[0] == "--log" else 1)


def test_a_folder_that_is_not_there_yet_is_waited_for(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "fault_clip"

    def written_meanwhile(seconds: float, poll: object) -> None:
        shutil.copytree(DATA / "fault_clip", folder)

    monkeypatch.setattr("grpo_core.trainers.commands.watch_command.pause", written_meanwhile)
    assert main(["watch", str(folder), "--stop-on", "serious"]) == 1
    monkeypatch.undo()
    assert "Waiting: " in capfd.readouterr().err
    assert main(["watch", str(tmp_path / "never"), "--every", "0.05", "--idle", "0.1"]) == 2


@pytest.mark.parametrize("value", ["0", "-1", "soon"])
def test_a_time_that_is_none_is_refused(value: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["watch", str(DATA / "grpo"), "--every", value])
    assert "--every" in capsys.readouterr().err


def test_a_run_that_is_gone_is_an_error_of_its_source(tmp_path: Path) -> None:
    run = Written(DATA / "grpo", tmp_path, 1)
    watch = Watch(open_source(run.folder))
    list(watch.look())
    shutil.rmtree(run.folder)
    with pytest.raises(RunFileError, match="no longer contains updates"):
        list(watch.look())


def test_a_run_that_cannot_be_read_any_more_is_tried_again_until_it_is_idle(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    waited: list[float] = []

    def breaks(watch: Watch) -> None:
        raise RunFileError("The process that reads it has ended.")

    def counted(seconds: float, poll: object) -> None:
        waited.append(seconds)
        watches[-1].read_at -= 600.0  # as if so much time had passed

    watches: list[Watch] = []
    begin = Watch.reopen

    def reopened(watch: Watch, source: Source) -> None:
        watches.append(watch)
        begin(watch, source)

    monkeypatch.setattr(Watch, "reopen", reopened)
    monkeypatch.setattr(Watch, "look", breaks)
    monkeypatch.setattr("grpo_core.trainers.commands.watch_command.pause", counted)
    assert main(["watch", str(DATA / "grpo"), "--every", "7", "--idle", "1000"]) == 0
    out, err = capfd.readouterr()
    assert waited == [7.0, 7.0] and err.count("has ended") == 3, "each failure is said, and waited after"
    assert "Nothing was read." in out


@pytest.mark.skipif(sys.platform == "win32", reason="Ctrl-C of a console")
def test_ctrl_c_ends_it_with_what_was_found() -> None:
    command = [sys.executable, "-m", "grpo_core", "watch", str(DATA / "fault_clip"), "--every", "0.1"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        lines = iter(process.stdout.readline, "")
        assert any("depart from the settings" in line for line in lines)
        process.send_signal(signal.SIGINT)
        assert any("updates were watched" in line for line in lines)
    assert process.returncode == 1
