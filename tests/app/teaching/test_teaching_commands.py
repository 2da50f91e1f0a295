"""The commands of docs/teaching.md, run one after the other in an empty folder, as by a new user."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from app.export import film_command
from app.teaching.controllers.homework import homework_of
from app.teaching.export import handout_command, homework, lesson_command, page_command
from app.teaching.lessons.catalogue import lesson_called
from app.teaching.lessons.prediction import Placed
from grpo_core.commands.cli import main as core

PAGE = Path(__file__).parents[3] / "docs" / "teaching.md"
COMMANDS = {
    "lesson": lesson_command.main,
    "handout": handout_command.main,
    "homework": homework.main,
    "page": page_command.main,
    "film": film_command.main,
}
IN_A_WINDOW = ("--present",)


def commands() -> list[list[str]]:
    """Return the commands in the page's code blocks as argument lists, without the interpreter."""
    blocks = re.findall(r"```\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    lines = [shlex.split(line, comments=True) for block in blocks for line in block.splitlines()]
    assert all(line[:2] == [".venv/bin/python", "-m"] for line in lines)
    return [line[2:] for line in lines if line[3] not in IN_A_WINDOW]


@pytest.mark.usefixtures("qapp")
def test_every_command_of_the_page_does_what_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRPO_LAB_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    ran = set()
    for package, name, *arguments in commands():
        if name == "homework":
            Path(arguments[0]).mkdir()
            handed_in = homework_of(lesson_called("mine.toml"), {1: Placed(0.5)}, "Ada")
            Path(arguments[0], "ada.json").write_bytes(handed_in.to_bytes())
        done = core([name, *arguments]) if package == "grpo_core" else COMMANDS[name](arguments)
        assert done == 0, [name, *arguments]
        ran.add(name)
        written = [arguments[place + 1] for place, word in enumerate(arguments) if word in ("--out", "--answers")]
        assert all(Path(file).stat().st_size > 100 for file in written)
    assert ran == {*COMMANDS, "train"}
