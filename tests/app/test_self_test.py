"""The self-test passes on a complete copy, and says what is wrong with an incomplete one."""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
import subprocess
import sys
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PySide6.QtGui import QImage
from PySide6.QtWidgets import QApplication, QCheckBox, QWidget

from app.__main__ import is_command, lacking
from app.arguments import this_program
from app.build import this_build
from app.self_test import drawn
from app.self_test.golden import UPDATES, compared, golden_file, numbers
from app.self_test.numbers import explained
from app.self_test.report import CheckFailed, CheckReport
from app.self_test.run import self_test
from app.self_test.window import foreign_libraries
from app.theme.stylesheet import GLYPHS, stylesheet
from app.theme.tokens import LIGHT
from app.trainers.self_test import parquet_loads
from grpo_core import __version__
from grpo_core.bandit.gradient import logit_gradient
from grpo_core.config import Settings, settings_from_json
from grpo_core.explain import RULES
from grpo_core.learners import learner

ROOT = Path(__file__).parents[2]


def python(*arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run Python in another process, in the root of the source tree."""
    usual: dict[str, Any] = {"cwd": ROOT, "capture_output": True, "text": True, "timeout": 200}
    return subprocess.run([sys.executable, *arguments], check=False, **usual | options)


def lines(report: list[str], start: str) -> list[str]:
    return [line for line in report if line.startswith(start)]


@pytest.mark.long  # the package that CI makes runs the same
def test_a_whole_copy_passes_without_display_and_with_a_home_that_cannot_be_written(tmp_path: Path) -> None:
    bare = {name: value for name, value in os.environ.items() if not name.startswith(("QT_", "GRPO_", "XDG_"))}
    bare.pop("DISPLAY", None)
    bare |= {"HOME": "/dev/null/nowhere", "TMPDIR": str(tmp_path)}
    out = tmp_path / "kept"
    done = python("-m", "app", "--self-test", "--out", str(out), env=bare)
    told = done.stdout.splitlines()
    assert done.returncode == 0, done.stdout + done.stderr
    assert told[0].startswith("GRPO Lab ") and ", source; " in told[0]
    assert told[-1] == f"All {len(told) - 2} checks hold."
    assert len(lines(told, "ok      ")) == len(told) - 2 >= 13
    assert done.stderr == ""
    assert QImage(str(out / "self-test.png")).width() > 1000
    assert not list(tmp_path.glob("GRPO*"))  # its own folder is gone again


def test_a_thread_that_fails_fails_the_self_test() -> None:
    code = """
import threading
import app.self_test.run, app.self_test.window
def check_window(report, out):
    thread = threading.Thread(target=lambda: 1 / 0, name="experiment")
    thread.start()
    thread.join()
app.self_test.window.check_window = check_window
raise SystemExit(app.self_test.run.self_test())
"""
    done = python("-c", code)
    assert done.returncode == 1
    (failed,) = lines(done.stdout.splitlines(), "FAILED")
    assert failed.endswith("because experiment: ZeroDivisionError: division by zero")


def test_a_copy_whose_pyarrow_lacks_what_it_imports_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    assert parquet_loads() == "pyarrow loads"
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(CheckFailed, match="cannot be loaded"):
        parquet_loads()


@pytest.mark.parametrize("change", ["logits", "actions", "series", "update", "empty", "missing"])
def test_a_wrong_golden_number_fails(change: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    golden = json.loads(golden_file().read_text("utf-8"))
    last = golden["updates"][-1]
    match change:
        case "logits":
            last["logits"][3] += 2e-9
        case "actions":
            last["actions"][0] = (last["actions"][0] + 1) % 10
        case "series":
            last["series"]["kl"] = float("nan")
        case "update":
            golden["updates"].pop()
        case "empty":
            golden = {}
    tampered = tmp_path / "golden.json"
    if change != "missing":
        tampered.write_text(json.dumps(golden), encoding="utf-8")
    assert self_test(golden=tampered, window=False) == 1
    told = capsys.readouterr().out.splitlines()
    (line,) = lines(told, "FAILED  ")
    assert line.startswith("FAILED  this copy's numbers are right, because ")
    expected = {"logits": "logit 4 of update 20 is", "actions": "update 20 drew", "series": "kl of update 20 is"}
    assert expected.get(change, "golden") in line
    assert told[-1].startswith("1 of 2 checks failed")


def test_a_difference_of_rounding_passes(tmp_path: Path) -> None:
    golden = json.loads(golden_file().read_text("utf-8"))
    golden["updates"][4]["logits"][0] += 1e-12
    near = tmp_path / "golden.json"
    near.write_text(json.dumps(golden), encoding="utf-8")
    assert "1e-12" in compared(near)


def test_the_golden_numbers_are_those_of_the_default_run() -> None:
    golden = json.loads(golden_file().read_text("utf-8"))
    recorded = settings_from_json(json.dumps(golden["settings"]))  # a setting that came later has its default there
    assert recorded == Settings(), "run `python -m tools.make_golden` if that is meant"
    *_, last = islice(learner(Settings()), UPDATES)
    assert len(golden["updates"]) == UPDATES
    assert np.allclose(numbers(last)["logits"], golden["updates"][-1]["logits"], rtol=0, atol=1e-9)


def test_a_gradient_that_is_not_the_slope_fails(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("app.self_test.numbers.logit_gradient", lambda *a: logit_gradient(*a) * (1 + 1e-5))
    assert self_test(window=False) == 1
    (line,) = lines(capsys.readouterr().out.splitlines(), "FAILED  ")
    assert line.startswith("FAILED  the gradient is the slope of the loss, because they differ by")


def test_a_number_that_disagrees_with_its_explanation_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    step = next(learner(Settings()))
    assert explained(step) == "115 numbers of update 1 agree"
    right = RULES["ratio"]
    monkeypatch.setitem(RULES, "ratio", lambda n, q: dataclasses.replace(f := right(n, q), value=f.value + 1e-6))
    with pytest.raises(CheckFailed, match=r"ratio.* when computed again"):
        explained(step)


def test_a_blank_window_and_a_lost_glyph_are_noticed(
    qapp: QApplication, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blank = QWidget()
    blank.resize(300, 200)
    with pytest.raises(CheckFailed, match="next to blank"):
        drawn.exported(blank, tmp_path / "blank.png")
    with pytest.raises(CheckFailed, match="could not be written"):
        drawn.exported(blank, tmp_path / "no folder" / "blank.png")
    assert "fonts" in drawn.resources()
    monkeypatch.setattr(drawn, "GLYPHS", tmp_path)
    with pytest.raises(CheckFailed, match="signs of the controls"):
        drawn.resources()
    step = next(learner(Settings()))
    assert "dark" in drawn.formula(step)
    monkeypatch.setattr("app.formula.render.formula_library", lambda: None)
    monkeypatch.setattr(drawn, "picture", lambda *a: None)
    with pytest.raises(CheckFailed, match="was not drawn"):
        drawn.formula(step)


def test_the_style_holds_in_a_folder_of_any_name(
    qapp: QApplication, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ticked() -> QImage:
        box = QCheckBox()
        box.setChecked(True)
        box.setStyleSheet(stylesheet(LIGHT, 2.0))
        box.resize(60, 60)
        return box.grab().toImage()

    usual = ticked()
    folder = tmp_path / "Für Übungen – πr² 空 (1)"
    shutil.copytree(GLYPHS, folder)
    monkeypatch.setattr("app.theme.stylesheet.GLYPHS", folder)
    assert ticked() == usual  # and a warning of Qt would fail the test
    other = tmp_path / "other – ü"
    shutil.copytree(folder, other)
    shutil.copyfile(other / "up.svg", other / "check-light.svg")
    monkeypatch.setattr("app.theme.stylesheet.GLYPHS", other)
    assert ticked() != usual
    monkeypatch.undo()
    assert ticked() == usual  # and the signs are found for the tests after this one


def test_whatever_a_check_raises_becomes_one_line() -> None:
    told: list[str] = []
    report = CheckReport(told.append)

    def broken() -> str:
        raise KeyError("gone")

    report.check("a thing works", broken)
    report.check("another works", lambda: "well")
    assert told[0].startswith("FAILED  a thing works, because of KeyError: 'gone' (broken, line ")
    assert told[1:] == ["ok      another works: well"]
    assert (report.failed, report.passed) == (1, 1)


@pytest.mark.parametrize(
    ("argument", "command"),
    [("train", True), ("export", False), ("film", False), ("run.grpo", False), ("--new", False), ("runs", False)],
)
def test_a_command_is_one_even_beside_a_folder_of_its_name_and_another_word_where_it_names_nothing(
    argument: str, command: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert is_command("runs")  # mistyped: the commands' parser lists them
    for folder in ("train", "runs"):
        (tmp_path / folder).mkdir()
    assert is_command(argument) is command


def test_the_program_takes_the_commands_that_need_no_window() -> None:
    done = python("-m", "app", "presets")
    assert done.returncode == 0 and "GRPO (DeepSeekMath)" in done.stdout


def test_a_library_that_the_system_lacks_is_named_with_what_to_install() -> None:
    said = lacking("libEGL.so.1: cannot open shared object file: No such file or directory")
    assert "lacks libEGL.so.1. Install it" in said and "libegl1" in said
    assert lacking("No module named 'app.start'") == ""


WITHOUT_QT = """\
import sys

class NoQt:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("PySide6", "shiboken6"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, NoQt())
from app.__main__ import main
sys.argv = ["grpo-lab", *sys.argv[1:]]
sys.exit(main())
"""


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (["--help"], 0, "Without a window: grpo-lab train"),
        (["--version"], 0, "Qt not installed"),
        (["train", "--help"], 0, "--steps"),
        (["export", "window"], 1, "Exporting pictures draws the window's panels, which needs Qt."),
        (["--self-test"], 1, "The self-test tries the window too, which needs Qt."),
        ([], 1, "The window needs Qt."),
    ],
)
def test_an_installation_without_qt_does_what_it_can_and_says_what_needs_qt(
    arguments: list[str], status: int, said: str
) -> None:
    done = python("-c", WITHOUT_QT, *arguments)
    told = " ".join((done.stdout + done.stderr).split())
    assert done.returncode == status and said.replace("grpo-lab", this_program()) in told
    assert status == 0 or f"grpo_lab-{__version__}-py3-none-any.whl[app]" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["runs"], "runs is opened in a window. “grpo-lab diagnose runs” says without one"),
        (["a.grpo"], "a.grpo is opened in a window. “grpo-lab inspect a.grpo” says without one"),
        (["--present", "3"], "A lesson is presented in a window."),
        (["--model", "folder"], "A model is chosen in a window."),
    ],
)
def test_what_needs_a_window_is_refused_without_a_display(
    arguments: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs").mkdir()
    hidden = ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM")
    bare = {name: value for name, value in os.environ.items() if name not in hidden} | {"PYTHONPATH": str(ROOT)}
    done = python("-m", "app", *arguments, cwd=tmp_path, env=bare)
    assert done.returncode == 2 and "There is no display" in done.stderr
    assert said.replace("grpo-lab", this_program()) in done.stderr
    assert not (tmp_path / "grpo-lab-run").exists()


@pytest.mark.skipif(os.name == "nt", reason="shell scripts")
def test_a_command_in_a_message_can_be_typed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    programs = tmp_path / ".venv" / "bin"
    programs.mkdir(parents=True)
    monkeypatch.setattr(sys, "executable", str(programs / "python"))
    monkeypatch.setenv("PATH", "/usr/bin")
    monkeypatch.chdir(tmp_path)
    assert this_program() == ".venv/bin/python -m app"  # a source tree that was not installed
    (programs / "grpo-lab").write_text("#!/bin/sh\n")
    (programs / "grpo-lab").chmod(0o755)
    assert this_program() == ".venv/bin/grpo-lab"
    (tmp_path / "away").mkdir()
    monkeypatch.chdir(tmp_path / "away")
    assert this_program() == str(programs / "grpo-lab")
    elsewhere = tmp_path / "bin"
    elsewhere.mkdir()
    (elsewhere / "grpo-lab").symlink_to(programs / "grpo-lab")
    monkeypatch.setenv("PATH", str(elsewhere))
    assert this_program() == "grpo-lab"
    (elsewhere / "grpo-lab").unlink()
    shutil.copy(programs / "grpo-lab", elsewhere)
    assert this_program() == str(programs / "grpo-lab"), "another copy of the program has that name"


def test_a_package_says_which_one_it_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert this_build().kind == "source"
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    monkeypatch.setattr(sys, "_MEIPASS", str(tmp_path), raising=False)
    assert this_build().kind == "damaged package"
    (tmp_path / "resources").mkdir()
    said = {"version": "1.2.3", "kind": "slim", "commit": "0123abc"}
    (tmp_path / "resources" / "build.json").write_text(json.dumps(said), encoding="utf-8")
    assert str(this_build()) == "GRPO Lab 1.2.3, slim, commit 0123abc"


MAPS = """\
55d0-55d8 r--p 00000000 fe:01 12   {package}/grpo-lab
7f10-7f18 r-xp 00001000 fe:01 13   {package}/_internal/libz.so.1
7f20-7f28 r-xp 00001000 fe:01 14   /usr/lib/x86_64-linux-gnu/libsqlite3.so.0.8.6
7f30-7f38 r-xp 00001000 fe:01 15   /usr/lib/x86_64-linux-gnu/libc.so.6
7f40-7f48 r-xp 00001000 fe:01 16   /usr/lib/x86_64-linux-gnu/libGL.so.1.7.0
7f50-7f58 rw-p 00000000 00:00 0    [heap]
"""


def test_a_library_of_the_system_in_the_place_of_the_packages_own_is_noticed() -> None:
    package = Path("/opt/a folder/grpo-lab")
    held = ["libz.so.1", "libsqlite3.so.0", "libQt6Core.so.6"]
    maps = MAPS.format(package=package)
    assert foreign_libraries(maps, package, held) == ["/usr/lib/x86_64-linux-gnu/libsqlite3.so.0.8.6"]
    assert foreign_libraries(maps, package, ["libz.so.1"]) == []
