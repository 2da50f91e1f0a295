"""Every command in README and docs/ runs exactly as printed, in the printed order."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from grpo_core.teaching.homework.file import Homework
from tests.core.trainers.hf.tiny import saved

pytestmark = pytest.mark.long
ROOT = Path(__file__).parents[2]
DOCUMENTS = sorted([ROOT / "README.md", *ROOT.glob("docs/*.md")])
PYTHON = ".venv/bin/python -m "
SHORTER = {"pretrain": ("--steps", "2", "--batch", "8"), "watch": ("--idle", "1")}
"""Options added to commands that would take minutes or never end."""
HERE = {"tcp://HOST:8786": "local:2", "outputs/my-run": "runs/tonight"}
"""Replacements for words that stand for something of the reader's: a scheduler, a run of another trainer."""
RUNS = {"traces/grpo": "runs/tonight", "sources/nemo_rl": "logs/exp_001"}
"""Runs from the data of the tests, and the folders in which the documents have them."""
NOT_YET = ("--sweep", "has left a trace")
"""An option of a command that needs traces which training with TRL would leave, and its message without them."""
VERDICTS = ("audit", "diagnose")
"""Commands that exit with status 1 if they find something."""
SETUP = ("make ", "python3.11 -m venv ", ".venv/bin/pip install ")
"""Prefixes of commands that create the environment in which the tests themselves run. Other tests check that their
targets exist.
"""


def commands(path: Path) -> list[str]:
    """Return the command lines in a document's code blocks, without their comments."""
    blocks = re.findall(r"^```\n(.*?)^```", path.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    lines = [line.split(" #")[0].strip() for block in blocks for line in block.splitlines()]
    return [line for line in lines if line.startswith((PYTHON, *SETUP))]


def test_the_documents_show_the_commands() -> None:
    assert commands(ROOT / "README.md") == ["make run", "make test"]
    shown = {line.split()[3] for path in DOCUMENTS for line in commands(path) if line.startswith(PYTHON + "grpo_core")}
    assert {"train", "inspect", "race", "sweep", "export", "import", "audit", "diagnose", "pretrain"} <= shown


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_each_command_of_a_document_runs(path: Path, tmp_path: Path) -> None:
    for data, folder in RUNS.items():
        shutil.copytree(ROOT / "tests" / "data" / data, tmp_path / folder)
    rows = [f"{step},{reward},a text,{step},{reward},a text" for step in (1, 2) for reward in (0, 1)]
    (tmp_path / "samples.csv").write_text("\n".join(("step,reward,completion,runde,note,sagt", *rows)))
    lines = [line.removeprefix(".venv/bin/") for line in commands(path) if line.startswith(PYTHON)]
    homework = Homework(name="Ada", lesson="kl", title="What?", digest="")
    (tmp_path / "class").mkdir()
    (tmp_path / "class" / "ada.json").write_bytes(homework.to_bytes())
    if any("FOLDER" in line for line in lines):
        pytest.importorskip("transformers")
        saved(tmp_path / "FOLDER", "llama")
    environment = {name: value for name, value in os.environ.items() if "DISPLAY" not in name}
    environment.pop("QT_QPA_PLATFORM")  # without a display the program runs offscreen by itself, and ends
    environment["PYTHONPATH"] = str(ROOT)
    for line in lines:
        words = [HERE.get(word, word) for word in shlex.split(line)[1:]]
        words += [extra for name, more in SHORTER.items() if name in words for extra in more]
        done = subprocess.run(
            [sys.executable, *words], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300
        )
        allowed = (0, 1) if any(name in words for name in VERDICTS) else (0,)
        if words[1] == "app" and " in a window." in done.stderr:  # it has understood what to open there
            allowed = (2,)
        if NOT_YET[0] in words and NOT_YET[1] in done.stderr:
            allowed = (2,)
        assert done.returncode in allowed, f"{line}\n{done.stdout}\n{done.stderr}"
        assert "Traceback" not in done.stderr
