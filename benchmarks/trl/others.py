"""The original loss functions of verl and OpenRLHF, from their wheels, without the packages' other dependencies.

Both need a GPU's libraries to install (ray, vllm, deepspeed). The files with the formulas need only torch, so the
wheels are downloaded without their dependencies, unpacked next to this environment, and these files imported; every
name that they import from elsewhere is replaced by a class that does nothing.
"""

from __future__ import annotations

import importlib
import subprocess
import sys
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

WHEELS = ("verl==0.9.1", "openrlhf==0.11.2")
"""Wheels to use. Both are under Apache 2.0. They are those for Python 3.11 on Linux, whichever Python runs this: only
source files are taken from them.
"""
FOLDER = Path(sys.prefix) / "others"


class ActorConfig(SimpleNamespace):
    """The fields of verl's actor configuration that its losses read."""

    def get(self, name: str, default: Any = None) -> Any:
        """Return a field or the default, like an OmegaConf node."""
        return getattr(self, name, default)


class _Idle:
    """Placeholder for a name that the formulas do not use."""

    def __init__(self, *_: Any, **__: Any) -> None: ...

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _Idle()

    def __call__(self, *_: Any, **__: Any) -> None: ...


class _Absent(ModuleType):
    """A missing module: every name in it is a class that does nothing."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (_Idle,), {})


@cache
def verl() -> Any:
    """Return ``verl.trainer.ppo.core_algos``."""
    _packages("verl", "verl.trainer", "verl.trainer.ppo", "verl.utils", "verl.workers")
    with _absent(
        "omegaconf", "tensordict", "verl.utils.device", "verl.trainer.config", "verl.workers.config"
    ) as entered:
        entered["verl.workers.config"].__dict__["ActorConfig"] = ActorConfig
        grouped = importlib.import_module("verl.utils.groupwise")
        sys.modules["verl.utils"].__dict__.update(
            as_torch_index=grouped.as_torch_index, group_mean_std=grouped.group_mean_std
        )
        return importlib.import_module("verl.trainer.ppo.core_algos")


@cache
def openrlhf(name: str) -> Any:
    """Return a module of OpenRLHF: ``models.loss``, ``models.utils`` or ``trainer.ppo_utils.experience_maker``."""
    _packages(
        "openrlhf",
        "openrlhf.models",
        "openrlhf.trainer",
        "openrlhf.trainer.ppo_utils",
        "openrlhf.trainer.ray",
        "openrlhf.utils",
    )
    with _absent(
        "ray",
        "deepspeed",
        "openrlhf.trainer.ppo_utils.experience",
        "openrlhf.trainer.ppo_utils.length_penalty",
        "openrlhf.trainer.ray.launcher",
        "openrlhf.utils.logging_utils",
        "openrlhf.utils.seqlen_balancing",
    ):
        return importlib.import_module(f"openrlhf.{name}")


@contextmanager
def _absent(*names: str) -> Iterator[dict[str, ModuleType]]:
    """Context manager in which files can be imported although modules that they import are missing or cannot be loaded.

    The substitutes are removed afterwards, since other libraries check whether deepspeed is installed.
    """
    entered = {name: _Absent(name) for name in names if name not in sys.modules}
    sys.modules.update(entered)
    try:
        yield dict(entered)
    finally:
        for name in entered:
            del sys.modules[name]


def _packages(*names: str) -> None:
    """Register packages without running their own ``__init__``, which imports everything else."""
    roots = unpacked()
    for name in names:
        package = sys.modules.setdefault(name, ModuleType(name))
        package.__path__ = [str(root.joinpath(*name.split("."))) for root in roots]


@cache
def unpacked(wheels: Sequence[str] = WHEELS) -> list[Path]:
    """Return the folders that contain the packages of ``wheels``, which are downloaded on the first call.

    Raises:
        subprocess.CalledProcessError: a wheel is not available.
    """
    for wanted in wheels:
        home = FOLDER / wanted.replace("==", "-")
        if home.is_dir():
            continue
        subprocess.run(
            [
                sys.executable,
                "-m",
                "pip",
                "--disable-pip-version-check",
                "-q",
                "download",
                "--no-deps",
                "--only-binary=:all:",
                "--python-version=311",
                "--platform=manylinux1_x86_64",
                "-d",
                str(FOLDER),
                wanted,
            ],
            check=True,
        )
        (wheel,) = FOLDER.glob(f"{home.name}-*.whl")
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(home)
    return [path.parent for wanted in wheels for path in _tops(FOLDER / wanted.replace("==", "-"))]


def _tops(home: Path) -> list[Path]:
    """Return the folder of the package in an unpacked wheel: at its top, or below its data."""
    name = home.name.partition("-")[0]
    return [*home.glob(name), *home.glob(f"*.data/purelib/{name}")]
