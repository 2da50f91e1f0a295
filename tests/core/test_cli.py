"""The command line: train, inspect, lists, and errors as one message."""

from __future__ import annotations

import os
import re
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from grpo_core import recompute
from grpo_core.assignments import settings_from
from grpo_core.commands.cli import main
from grpo_core.config import PRESETS
from grpo_core.errors import SettingsError
from grpo_core.learners import learner
from grpo_core.runs.run_file import RunReader, RunWriter
from tests.core.steps import same

ROOT = Path(__file__).parents[2]


@pytest.fixture
def trained(tmp_path: Path) -> Path:
    """A run of 12 updates of the default bandit."""
    path = tmp_path / "run.grpo"
    assert main(["train", "--steps", "12", "--out", str(path)]) == 0
    return path


def said(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> str:
    """Return what a command prints."""
    capsys.readouterr()
    assert main([str(argument) for argument in arguments]) == 0
    return capsys.readouterr().out


def refused(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> str:
    """Return the one error message with which a command ends."""
    capsys.readouterr()
    try:
        code: object = main([str(argument) for argument in arguments])
    except SystemExit as end:
        code = end.code
    output = capsys.readouterr()
    assert code == 2
    assert output.out == ""
    assert output.err.count("\n") == 1
    return output.err


def test_training_records_what_the_learner_yields(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "run.grpo"
    sets = ["--set", "objective.beta=0.1", "--set", "task.landscape=double_peak"]
    assert main(["train", "--preset", "dapo", *sets, "--steps", "8", "--seed", "3", "--out", str(path)]) == 0
    output = capsys.readouterr()
    assert "8/8" in output.err and output.out == f"{path} contains 8 updates.\n"
    settings = settings_from("DAPO", ["objective.beta=0.1", "task.landscape=double_peak", "seed=3"])
    assert PRESETS["DAPO"].objective.replace(beta=0.1) == settings.objective
    with RunReader.open(path) as reader:
        assert (reader.last, reader.meta.ended, reader.meta.settings) == (8, True, settings)
        assert all(same(reader.step(step.step), step) for step, _ in zip(learner(settings), range(8), strict=False))
    assert [left.name for left in tmp_path.iterdir()] == ["run.grpo"]


def test_an_existing_file_is_replaced_only_by_force_by_usable_settings_and_if_no_window_writes_it(
    trained: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = trained.read_bytes()
    assert "already exists" in refused(capsys, "train", "--out", trained)
    refused(capsys, "train", "--set", "objective.beta=-1", "--out", trained, "--force")
    assert trained.read_bytes() == before
    with RunWriter.open(trained):
        assert "being written" in refused(capsys, "train", "--out", trained, "--force")
    assert main(["train", "--steps", "3", "--out", str(trained), "--force"]) == 0
    with RunReader.open(trained) as reader:
        assert reader.last == 3


@pytest.mark.parametrize(
    "content", [b"", b"my thesis", b"SQLite format 3\0" + bytes(4000)], ids=["empty", "text", "sql"]
)
def test_a_file_that_is_no_run_is_not_replaced_even_by_force(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: bytes
) -> None:
    path = tmp_path / "thesis.txt"
    path.write_bytes(content)
    refused(capsys, "train", "--steps", "2", "--out", path, "--force")
    assert [(left.name, left.read_bytes()) for left in tmp_path.iterdir()] == [("thesis.txt", content)]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--preset", "DAPOO"], "similar ones are DAPO"),
        (["--set", "beta=0.1"], "similar ones are objective.beta"),
        (["--set", "objective.betta=0.1"], "similar ones are objective.beta"),
        (["--set", "objective.beta"], "write a setting and its value"),
        (["--set", "objective.beta=much"], "objective.beta cannot be “much”"),
        (["--set", "objective.beta=nan"], "objective.beta cannot be nan"),
        (["--set", "objective.kl=k4"], "one of k1, k2, k3, exact"),
        (["--set", "learner.group_size=2.5"], "without a fraction"),
        (["--set", "learner.critic=perhaps"], "true or false"),
        (["--set", "task.levels=a,b"], "numbers separated by commas"),
        (["--seed", "-1"], "seed cannot be -1"),
        (["--steps", "0"], "whole number of at least 1"),
        (["--steps", "x"], "whole number of at least 1"),
        (["--steps", "1" * 5000], "is more than 1,000,000,000,000"),
        (["--nonsense"], "--nonsense"),
    ],
)
def test_bad_settings_are_refused_before_a_file_appears(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], sentence: str
) -> None:
    assert sentence in refused(capsys, "train", "--out", tmp_path / "run.grpo", *arguments)
    assert list(tmp_path.iterdir()) == []


def test_words_become_the_values_that_settings_hold() -> None:
    given = ["objective.dual_clip=3", "learner.critic=yes", "task.levels=0, 0.5", "learner.mu=2", "objective.std=none"]
    settings = settings_from(None, given)
    assert (settings.objective.dual_clip, settings.learner.critic, settings.bandit.levels) == (3, True, (0.0, 0.5))
    assert (settings.learner.mu, settings.objective.std) == (2, "none")
    assert settings_from(None, ["objective.dual_clip=none"]).objective.dual_clip is None


def test_a_preset_that_depends_on_the_task_sees_the_task() -> None:
    settings = settings_from("Dr. GRPO", ["task.landscape=length", "task.max_length=6"])
    assert settings.objective.max_tokens == 6
    with pytest.raises(SettingsError, match="no such preset"):
        settings_from("nobody", [])


def test_inspect_says_what_a_run_is(trained: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = said(capsys, "inspect", trained)
    assert "Updates   12" in text
    assert "GRPO" in text
    assert "Mean reward" in text
    assert re.search(r"^ *Best action +7$", text, re.MULTILINE)
    assert "was not closed" not in text


def test_inspect_prints_the_table_of_an_update(trained: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = said(capsys, "inspect", trained, "--step", "3", "--pass", "2").splitlines()
    assert lines[0] == "Update 3, pass 2 of 4"
    assert lines[1].split()[:4] == ["#", "Prompt", "Action", "Reward"]
    assert lines[10].startswith("Group 1 (prompt 1): mean reward 0.")
    assert lines[12].startswith("loss, pass 2 = ")


def test_inspect_explains_a_number_and_gives_the_digits_of_the_comparison_on_demand(
    trained: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ("inspect", trained, "--step", "1", "--explain", "advantage", "--row", "3")
    text, verbose = said(capsys, *asked), said(capsys, *asked, "--verbose")
    assert "\nadvantage of sample 3 = " in text
    assert "Computed twice: agrees" in text and "rounding alone" not in text
    assert "Computed twice: agrees" in verbose and "rounding alone can cause" in verbose
    assert "mean reward of group 1" in text


def test_inspect_tries_changes_of_an_unhealthy_update(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "run.grpo"
    assert main(["train", "--steps", "2", "--set", "optimizer.learning_rate=5", "--out", str(path)]) == 0
    text = said(capsys, "inspect", path, "--step", "2", "--try")
    assert "Learning rate α: 5 → 1.25, tried over 6 updates: Pushes clipped" in text
    assert main(["train", "--steps", "2", "--set", "learner.mu=1", "--out", str(path), "--force"]) == 0
    assert "or no change that was tried helps" in said(capsys, "inspect", path, "--try")


def test_inspect_follows_a_branch_into_its_parent(trained: Path, capsys: pytest.CaptureFixture[str]) -> None:
    branch = trained.with_name("branch.grpo")
    with RunReader.open(trained) as parent:
        RunWriter.create(branch, parent.meta.settings, parent=(parent, 9)).close()
    assert "none of its own, 9 before the branch point" in said(capsys, "inspect", branch)
    assert said(capsys, "inspect", branch, "--step", "4") == said(capsys, "inspect", trained, "--step", "4")
    trained.unlink()
    assert "no longer exists" in refused(capsys, "inspect", branch, "--step", "4")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--step", "13"], "it contains 1 to 12"),
        (["--step", "1", "--pass", "5"], "passes 1 to 4"),
        (["--explain", "advntage", "--row", "1"], "no number “advntage”"),
        (["--explain", "advantage", "--row", "99"], "advantage"),
        (["--explain", "advantage", "--row", "0"], "whole number of at least 1"),
    ],
)
def test_what_is_not_there_is_said(
    trained: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], sentence: str
) -> None:
    assert sentence in refused(capsys, "inspect", trained, *arguments)


def test_a_broken_file_is_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "text.grpo").write_text("no run" * 99)
    assert "is not a run file" in refused(capsys, "inspect", tmp_path / "text.grpo")
    assert "There is no run file" in refused(capsys, "inspect", tmp_path / "missing.grpo")
    assert "There is no folder" in refused(capsys, "train", "--out", tmp_path / "nowhere" / "run.grpo")


def test_a_terminal_does_not_obey_what_a_file_says(trained: Path, capsys: pytest.CaptureFixture[str]) -> None:
    hostile = trained.with_name("\x1b]0;owned\x07\x9b31m\r.grpo")
    assert main(["inspect", str(hostile)]) == 2
    with RunReader.open(trained) as reader:
        assert reader.last
    with closing(sqlite3.connect(trained)) as file, file:
        file.execute("UPDATE meta SET value = ? WHERE key = 'title'", ("\x1b[2Jmine",))
        file.execute("DELETE FROM meta WHERE key = 'checks'")
    main(["inspect", str(trained)])
    out, err = capsys.readouterr()
    assert "mine" in out
    assert "owned" in err
    assert not {c for c in out + err if not c.isprintable()} - {"\n", "\t"}


def test_lists_name_every_preset_and_setting(capsys: pytest.CaptureFixture[str]) -> None:
    listed = said(capsys, "presets")
    assert all(name in listed for name in PRESETS)
    listed = said(capsys, "settings")
    assert "objective.beta\n    How strongly" in listed
    assert "task.custom\n" in listed


def interrupted(stream: str, word: bytes, *arguments: str) -> tuple[bytes, str]:
    """Press Ctrl+C as soon as a command has written ``word``, and return all that it has written."""
    process = subprocess.Popen(
        [sys.executable, "-m", "grpo_core", *arguments], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    seen = b""
    while word not in seen:
        seen += getattr(process, stream).read(20)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=200)
    assert b"Traceback" not in err
    assert process.returncode == 130
    return out, err.decode()


@pytest.mark.skipif(os.name != "posix", reason="sends a POSIX signal")
def test_ctrl_c_leaves_a_whole_run(tmp_path: Path) -> None:
    path = tmp_path / "run.grpo"
    out, err = interrupted("stderr", b"mean reward", "train", "--steps", "1000000", "--out", str(path))
    with RunReader.open(path) as reader:
        assert reader.meta.ended
        assert reader.last > 0
        assert f"contains {reader.last} updates" in err
    assert out == b""
    assert [left.name for left in tmp_path.iterdir()] == ["run.grpo"]


@pytest.mark.skipif(os.name != "posix", reason="sends a POSIX signal")
@pytest.mark.parametrize("command", ["train", "sweep"])
def test_ctrl_c_leaves_what_was_there(tmp_path: Path, command: str) -> None:
    path = tmp_path / ("kept.grpo" if command == "train" else "kept.csv")
    begin = {"train": ["--steps", "2"], "sweep": ["--updates", "2", "--over", "objective.beta=0,1"]}
    endless = {"train": ["--steps", "1000000", "--force"], "sweep": ["--updates", "1000000", "--seeds", "20"]}
    until = {"train": ("stderr", b"mean reward"), "sweep": ("stdout", b"reward after")}
    assert main([command, *begin[command], "--out", str(path)]) == 0
    before = path.read_bytes()
    _, err = interrupted(*until[command], command, *endless[command], "--out", str(path))
    assert path.read_bytes() == before
    assert not list(tmp_path.glob(".*"))
    if command == "train":
        with RunReader.open(tmp_path / "kept 2.grpo") as reader:
            assert reader.last > 0
            assert f"kept 2.grpo contains {reader.last} updates" in err


@pytest.mark.parametrize("place", ["--step", "--pass", "--row", "--token", "--group"])
@pytest.mark.parametrize("number", ["1" * 23, "1" * 5000], ids=["23 digits", "5000 digits"])
def test_a_number_that_is_far_too_large_is_one_sentence(
    trained: Path, capsys: pytest.CaptureFixture[str], place: str, number: str
) -> None:
    assert len(refused(capsys, "inspect", trained, place, number, "--explain", "advantage")) < 400


def test_the_command_line_needs_no_qt_and_no_torch(tmp_path: Path) -> None:
    script = (
        "import sys; from grpo_core.commands.cli import main; path = sys.argv[1]\n"
        "assert main(['train', '--steps', '2', '--out', path]) == 0\n"
        "assert main(['inspect', path, '--explain', 'loss']) == 0\n"
        "bad = [name for name in sys.modules if name.split('.')[0] in ('PySide6', 'pyqtgraph', 'torch', 'app')]\n"
        "assert not bad, bad\n"
    )
    subprocess.run(
        [sys.executable, "-c", script, str(tmp_path / "run.grpo")], cwd=ROOT, check=True, capture_output=True
    )


def test_the_language_model_trains_without_torch(tmp_path: Path, without_torch: Path) -> None:
    run, small = tmp_path / "run.grpo", ["--set", "task.prompts=2", "--set", "task.held_out=8"]
    told = ""
    for arguments in (["train", "--language", "--steps", "3", "--out", str(run), *small], ["inspect", str(run)]):
        command = [sys.executable, "-m", "grpo_core", *arguments]
        told = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    assert re.search(r"Computed +with NumPy", told) and "Right in the batch" in told


def test_what_only_torch_can_do_says_how_to_get_it(tmp_path: Path, without_torch: Path) -> None:
    command = [sys.executable, "-m", "grpo_core", "pretrain", "--out", str(tmp_path / "mine.safetensors")]
    done = subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True)
    assert done.returncode == 2
    assert "needs torch" in done.stderr and "own language model work without it" in done.stderr


@pytest.mark.parametrize(
    ("preset", "told"), [("GRPO (DeepSeekMath)", "no signal"), ("reinforce", "yet the advantages are not 0")]
)
def test_inspect_says_no_signal_only_where_no_advantage_pushes(
    preset: str, told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "run.grpo"
    equal = ["--set", "task.landscape=custom", "--set", "task.actions=3", "--set", "task.custom=(1,1,1)"]
    assert main(["train", "--preset", preset, *equal, "--steps", "1", "--out", str(path)]) == 0
    assert told in said(capsys, "inspect", path, "--step", "1")
    with RunReader.open(path) as reader:
        assert recompute.advantage(reader.step(1)).any() == (told != "no signal")


@pytest.mark.parametrize("preset", ["BNPO", "GRPO (TRL 1.16 defaults)"])
def test_inspect_names_every_preset_that_has_these_switches(
    preset: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "run.grpo"
    assert main(["train", "--preset", preset, "--steps", "1", "--out", str(path)]) == 0
    text = said(capsys, "inspect", path)
    assert "GRPO (TRL 1.16 defaults) (the same switches as BNPO)" in text
