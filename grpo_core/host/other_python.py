"""Another Python of the user, in which the training process of a language model runs because it has torch.

A packaged program has no torch that can use a GPU, and nothing can be installed into it. It therefore starts the
process in a Python that has one. That Python imports ``grpo_core`` from the program
(:func:`grpo_core.child.start.preamble`), so both are of the same version; window, files and messages are the same.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from grpo_core.child.start import preamble
from grpo_core.config import Settings
from grpo_core.errors import GrpoError, shortened
from grpo_core.parsing import from_json
from grpo_core.shipped import core_source
from grpo_core.text import tr
from grpo_core.versions import numbers

ALWAYS = ("numpy>=2.1", "filelock>=3.16")
"""Requirements of the training process."""
BESIDE_SOURCE = ("array-api-compat>=1.11", "tqdm>=4.66")
"""Further ones, whose source is in the packaged program, but not in a source tree."""
OF_TORCH = ("torch>=2.13,<3", "safetensors>=0.6")
"""Further ones of the program's own model on a GPU."""
OF_FOLDERS = ("torch>=2.13,<3", "safetensors>=0.8", "transformers>=5.23,<6", "peft>=0.21,<0.22", "gguf>=0.19")
"""Further ones of a model from a folder."""
OLDEST = (3, 11)
SECONDS = 20.0
"""Time limit in seconds for the description of a Python, which usually takes a tenth of a second."""
PLACE = "grpo-torch"
"""Folder in the user's home in which a virtual environment with torch is looked for."""
_BIN, _NAMES = ("Scripts", ("python.exe",)) if sys.platform == "win32" else ("bin", ("python3", "python"))


@dataclass(frozen=True, kw_only=True)
class OtherPython:
    """A Python on this machine.

    Attributes:
        libraries: versions of those of the required libraries that it has, by name.
        gpu: the version of CUDA or ROCm that its torch was built for, empty without one.
    """

    path: str
    version: str
    libraries: Mapping[str, str]
    gpu: str

    def __str__(self) -> str:
        torch = self.libraries.get("torch", tr("missing"))
        return tr("{path} (Python {version}, torch {torch})").format(path=self.path, version=self.version, torch=torch)

    def refusal(self, needed: Sequence[str], *, gpu: bool) -> str:
        """Return what this Python lacks of what is ``needed``, and how to install it. Empty if it lacks nothing."""
        missing = [one for one in needed if not fulfils(self.libraries, one)]
        if missing:
            text = tr("{python} lacks {listed}. Install it with: {line}")
            return text.format(python=self, listed=", ".join(missing), line=install_line(self.path, missing))
        if gpu and not self.gpu:
            return tr(
                "The torch of {python} was built for the CPU. https://pytorch.org/get-started/locally names the "
                "command that installs it for your GPU; add --force-reinstall to it."
            ).format(python=self)
        return ""


class Pythons:
    """Chooses the Python in which the training process of a run is started.

    Attributes:
        chosen: path of the Python that the user has chosen. If it is empty, a packaged program that lacks torch looks
            for one.
    """

    def __init__(self, chosen: str = "") -> None:
        self.chosen = chosen

    def of(self, settings: Settings) -> OtherPython | None:
        """Return the Python for a run, or None for that of this program.

        Raises:
            GrpoError: none is usable; the message says what to install, and how.
        """
        model = settings.model
        if not settings.is_language or (model.device == "cpu" and not model.folder):
            return None
        return self.usable(requirements(model.folder), gpu=model.device != "cpu")

    def usable(self, needed: Sequence[str], *, gpu: bool) -> OtherPython | None:
        """Return the Python for a process with these requirements, as :meth:`of` does."""
        if self.chosen:
            return checked(self.chosen, needed, gpu=gpu)
        if not getattr(sys, "frozen", False):  # its torch is that of its own Python, into which it can be installed
            return None
        if not gpu and all(find_spec(_name(one).replace("-", "_")) for one in needed):
            return None
        for path in candidates():
            try:
                return checked(path, needed, gpu=gpu)
            except GrpoError:
                continue
        home, name = Path.home() / PLACE, "py" if sys.platform == "win32" else "python3"
        line = f"{name} -m venv {_quoted(home)} && {install_line(str(home / _BIN / 'python'), needed)}"
        text = tr(
            "This program contains no torch for this model, and no Python with it was found. To set one up, which is "
            "found from then on, type: {line}\nTo choose another one: Run, Python with torch…"
        )
        raise GrpoError(text.format(line=line))


def requirements(folder: str) -> tuple[str, ...]:
    """Return the requirements of a model from ``folder``, or of the program's own model if it is empty."""
    source = core_source()
    own = () if source is None or (source / "array_api_compat").is_dir() else BESIDE_SOURCE
    of_model = OF_FOLDERS if folder else OF_TORCH
    return (*ALWAYS, *own, *(one for one in of_model if _name(one) != "gguf" or folder.lower().endswith(".gguf")))


def fulfils(libraries: Mapping[str, str], requirement: str) -> bool:
    """Return whether the ``libraries`` fulfil a requirement such as ``torch>=2.13,<3``."""
    name, _, bounds = requirement.partition(">=")
    low, _, high = bounds.partition(",<")
    here = numbers(libraries.get(name, ""))
    return here >= numbers(low) and (not high or here < numbers(high))


def install_line(python: str, requirements: Sequence[str]) -> str:
    """Return the command with which a user installs libraries into a Python."""
    return " ".join([_quoted(python), "-m pip install", *(f'"{one}"' for one in requirements)])


def candidates() -> Iterator[str]:
    """Yield the Pythons to look at: of the active environment, of :data:`PLACE`, and on the path."""
    active = (os.environ.get("VIRTUAL_ENV"), os.environ.get("CONDA_PREFIX"), str(Path.home() / PLACE))
    places = [str(Path(folder, _BIN)) for folder in active if folder]
    places += filter(None, os.environ.get("PATH", os.defpath).split(os.pathsep))
    found = (shutil.which(name, path=place) for place in places for name in _NAMES)
    yield from dict.fromkeys(path for path in found if path)


def checked(path: str, needed: Sequence[str], *, gpu: bool) -> OtherPython:
    """Return the Python at ``path``, an executable or the folder of a virtual environment.

    Raises:
        GrpoError: it lacks what is ``needed``, is too old or no Python, does not answer, or cannot import
            ``grpo_core``.
    """
    if core_source() is None:
        text = tr("The program was installed with pip: install torch into the same Python, with: {line}")
        raise GrpoError(text.format(line=install_line(sys.executable, needed)))
    python = _described(shutil.which(_NAMES[0], path=str(Path(path, _BIN))) or path if Path(path).is_dir() else path)
    if why := python.refusal(needed, gpu=gpu):
        raise GrpoError(why)
    return python


def run_command(path: str, arguments: Sequence[str]) -> int:
    """Run this program's command line in the Python at ``path``. Return its exit status.

    Raises:
        GrpoError: that Python cannot be used.
    """
    python = checked(path, requirements(""), gpu=False)
    code = f"{preamble()}from grpo_core.commands.cli import main; sys.exit(main(sys.argv[1:], here=True))"
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal sends it to the other process too
    try:
        return subprocess.run([python.path, "-c", code, *arguments], check=False).returncode
    finally:
        signal.signal(signal.SIGINT, before)


def _described(path: str) -> OtherPython:
    """Ask a Python for its version, then as JSON for its libraries (:func:`grpo_core.versions.tell`)."""
    names = [_name(one) for one in (*ALWAYS, *BESIDE_SOURCE, *OF_FOLDERS)]
    first_line = "import sys; print(*sys.version_info[:3], flush=True)"
    code = f"{first_line}\n{preamble()}from grpo_core.versions import tell; tell()"
    try:
        done = subprocess.run(
            [path, "-c", code, *names],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=SECONDS,
            check=False,
            creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        why = getattr(error, "strerror", None) or tr("no answer within {seconds:g} seconds").format(seconds=SECONDS)
        raise GrpoError(tr("{path} could not be asked for its version: {why}.").format(path=path, why=why)) from None
    first, _, rest = done.stdout.decode("utf-8", "replace").partition("\n")
    if not re.fullmatch(r"\d+ \d+ \d+", first.strip()):
        raise GrpoError(tr("{path} is not a Python 3 interpreter.").format(path=path))
    version = ".".join(first.split())
    if numbers(version) < OLDEST:
        text = tr("{path} is Python {version}; {oldest} or newer is needed.")
        raise GrpoError(text.format(path=path, version=version, oldest=".".join(map(str, OLDEST))))
    try:
        told = from_json(rest.splitlines()[-1])
        return OtherPython(path=path, version=version, libraries=dict(told["libraries"]), gpu=str(told["gpu"]))
    except (ValueError, LookupError, TypeError):
        why = (done.stderr.decode("utf-8", "replace").splitlines() or [tr("it says nothing")])[-1]
        raise GrpoError(tr("{path} cannot run this program: {why}.").format(path=path, why=shortened(why))) from None


def _name(requirement: str) -> str:
    return requirement.partition(">=")[0]


def _quoted(path: str | Path) -> str:
    return f'"{path}"' if " " in str(path) else str(path)
