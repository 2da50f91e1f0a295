"""Pythons of the user in which a language model can be trained: how they are found, examined and refused."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from grpo_core.child import start
from grpo_core.config import Settings, language_settings
from grpo_core.errors import GrpoError
from grpo_core.host import other_python
from grpo_core.host.other_python import (
    ALWAYS,
    BESIDE_SOURCE,
    OF_FOLDERS,
    OF_TORCH,
    PLACE,
    OtherPython,
    Pythons,
    candidates,
    checked,
    fulfils,
    requirements,
)

ROOT = Path(__file__).parents[3]
ON_A_GPU = language_settings().replace({"model.device": "cuda"})
posix = pytest.mark.skipif(sys.platform == "win32", reason="the programs of these tests are shell scripts")


def program(path: Path, script: str) -> str:
    """Write a shell script."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return str(path)


def of(libraries: dict[str, str], gpu: str = "") -> OtherPython:
    return OtherPython(path="/opt/my python", version="3.12.1", libraries=libraries, gpu=gpu)


def test_the_requirements_are_those_of_the_project() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = project["optional-dependencies"]
    assert list(OF_TORCH) == extras["lm"] and list(OF_FOLDERS) == extras["hf"]
    assert {*ALWAYS, *BESIDE_SOURCE} <= {*project["dependencies"]}
    assert f">={'.'.join(map(str, other_python.OLDEST))}" == project["requires-python"]


def test_a_model_from_a_folder_needs_more_and_one_of_gguf_more_still() -> None:
    own, folder, gguf = (requirements(name) for name in ("", "/models/tiny", "/models/tiny.GGUF"))
    assert {*own} <= {*ALWAYS, *BESIDE_SOURCE, *OF_TORCH}
    assert "gguf>=0.19" not in folder and "peft>=0.21,<0.22" in folder
    assert {*gguf} - {*folder} == {"gguf>=0.19"}


@pytest.mark.parametrize(
    ("version", "wanted"),
    [("2.13.0+cu130", True), ("2.13", True), ("2.12.1", False), ("3.0.0", False), ("2.9.0", False), (None, False)],
)
def test_versions_are_compared_by_their_numbers(version: str | None, wanted: bool) -> None:
    assert fulfils({} if version is None else {"torch": version}, "torch>=2.13,<3") is wanted


def test_a_refusal_names_the_line_to_type() -> None:
    python = of({"numpy": "2.4.6", "filelock": "4.2", "torch": "2.9.0+cu126"}, gpu="12.6")
    assert python.refusal(("numpy>=2.1", "torch>=2.13,<3", "safetensors>=0.6"), gpu=True) == (
        "/opt/my python (Python 3.12.1, torch 2.9.0+cu126) lacks torch>=2.13,<3, safetensors>=0.6. Install it with: "
        '"/opt/my python" -m pip install "torch>=2.13,<3" "safetensors>=0.6"'
    )
    assert "built for the CPU" in of({"torch": "2.13.0+cpu"}).refusal(("torch>=2.13,<3",), gpu=True)
    assert of({"torch": "2.13.0+cpu"}).refusal(("torch>=2.13,<3",), gpu=False) == ""


def test_an_empty_environment_lacks_everything(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path)], check=True)
    python = checked(str(tmp_path), (), gpu=False)
    assert python.version == ".".join(map(str, sys.version_info[:3])) and not python.libraries and not python.gpu
    with pytest.raises(GrpoError) as refused:
        checked(str(tmp_path), requirements(""), gpu=True)
    assert all(f'"{one}"' in str(refused.value) for one in requirements(""))
    assert f"{python.path} -m pip install" in str(refused.value) and Path(python.path).parent.parent == tmp_path


def test_nothing_is_written_beside_the_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("__init__.py", "versions.py"):
        (tmp_path / "grpo_core" / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / "grpo_core" / name, tmp_path / "grpo_core" / name)
    monkeypatch.setattr(start, "core_source", lambda: tmp_path)
    monkeypatch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
    before = {*tmp_path.rglob("*")}
    assert checked(sys.executable, (), gpu=False).libraries["numpy"]
    assert {*tmp_path.rglob("*")} == before


@posix
@pytest.mark.parametrize(
    ("script", "why"),
    [
        ("echo GNU coreutils", "is not a Python 3 interpreter"),
        ("exit 1", "is not a Python 3 interpreter"),
        ("printf '\\377\\376'", "is not a Python 3 interpreter"),
        ("echo 3 9 18; exit 1", "is Python 3.9.18; 3.11 or newer is needed"),
        ("echo 3 12 1; echo 'ImportError: no module _struct' >&2; exit 1", "ImportError: no module _struct."),
        ("echo 3 12 1; echo '[]'", "cannot run this program"),
        ("sleep 30", "no answer within 0.2 seconds"),
    ],
)
def test_what_is_no_usable_python_is_refused(
    script: str, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(other_python, "SECONDS", 0.2 if "sleep" in script else 20)
    with pytest.raises(GrpoError, match=re.escape(why)):
        checked(program(tmp_path / "python3", script), (), gpu=False)


def test_a_program_that_has_been_replaced_is_not_mixed_with_its_successor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(start, "__version__", "0.0.1")
    with pytest.raises(GrpoError, match="was replaced by another version"):
        checked(sys.executable, (), gpu=False)


def test_modules_of_the_current_folder_are_not_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "json.py").write_text("raise SystemExit(77)\n")
    monkeypatch.chdir(tmp_path)
    assert checked(sys.executable, (), gpu=False).libraries["numpy"]


@posix
def test_the_active_environment_comes_first_then_the_place_of_ours_then_the_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("VIRTUAL_ENV", str(tmp_path / "active"))
    monkeypatch.delenv("CONDA_PREFIX", raising=False)
    monkeypatch.setenv("PATH", f"{tmp_path / 'one'}::{tmp_path / 'two'}:{tmp_path / 'one'}")
    wanted = [
        program(tmp_path / folder / name, "exit 1")
        for folder, name in (
            ("active/bin", "python3"), (f"{PLACE}/bin", "python"), ("one", "python3"), ("two", "python")
        )
    ]  # fmt: skip # one per line is no clearer
    assert [*candidates()] == wanted


def test_a_bandit_and_a_model_on_the_cpu_stay_in_this_program() -> None:
    pythons = Pythons("/nowhere/python3")
    assert pythons.of(Settings()) is None and pythons.of(language_settings()) is None
    with pytest.raises(GrpoError, match="/nowhere/python3"):
        pythons.of(ON_A_GPU)


@posix
def test_a_packaged_program_takes_the_first_that_has_torch_or_says_how_to_get_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert Pythons().of(ON_A_GPU) is None, "from source it has its own Python"
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    for name in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "a home"))
    monkeypatch.setenv("PATH", f"{tmp_path / 'old'}:{tmp_path / 'good'}")
    program(tmp_path / "old" / "python3", "echo 3 9 18; exit 1")
    with pytest.raises(GrpoError) as refused:
        Pythons().of(ON_A_GPU)
    place = tmp_path / "a home" / PLACE
    assert f'python3 -m venv "{place}" && "{place}/bin/python" -m pip install ' in str(refused.value)
    libraries = ", ".join(
        f'"{one.partition(">=")[0]}": "{one.split("=")[1].split(",")[0]}"' for one in requirements("")
    )
    good = program(
        tmp_path / "good" / "python3", f"""echo 3 13 0; echo '{{"libraries": {{{libraries}}}, "gpu": "13.0"}}'"""
    )
    chosen = Pythons().of(ON_A_GPU)
    assert chosen is not None and (chosen.path, chosen.gpu) == (good, "13.0")
    assert Pythons().usable(ALWAYS, gpu=False) is None, "a package with everything uses its own"
