"""Odd surroundings of a recorded training: verl's worker ends with the same losses and weights, to the bit."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib
import io
import os
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parents[1])]

from benchmarks.surroundings import SURROUNDINGS, Recorded, Surrounding, hook_raises, hooks  # noqa: E402

STEPS = 2
BEGINS = ("before record", "before training")
WITHOUT = {"actor_rollout_ref.model.external_lib": "null"}
"""Setting with which verl does not import the recorder: the surrounding begins first."""


def recorder() -> Any:
    """Import the recorder."""
    tiny_run = importlib.import_module("tiny_run")
    return tiny_run.module_at(tiny_run.RECORDER)


ODD: dict[str, tuple[Surrounding, str]] = {
    "usual": (lambda recorded, stack: None, BEGINS[0]),
    **{f"{name} {begins}": (entered, begins) for name, entered in SURROUNDINGS.items() for begins in BEGINS},
    **{f"{name} raises": (hook_raises(name), BEGINS[0]) for name in hooks(recorder())},
}
"""Name -> a surrounding, and when it begins."""


def trained(folder: Path, name: str, *, recorded: bool = True) -> tuple[str, Any]:
    """Train in a surrounding. Returns a digest of all losses and of the weights, and the recorder."""
    with contextlib.redirect_stdout(io.StringIO()):
        run = importlib.import_module("tiny_run").Run(folder, dict(WITHOUT))
    del os.environ["GRPO_LAB_TRACE"]  # set by the run; with it, the recorder would wrap verl's classes when imported
    module, recording = recorder(), None
    (surrounding, begins), of = ODD[name], Recorded(module, run.worker.actor, folder / "trace")
    with ExitStack() as stack:
        if begins == "before record":
            surrounding(of, stack)
        if recorded:
            recording = module.record(run.worker, folder / "trace")
        if begins == "before training":
            surrounding(of, stack)
        losses = [run.step()["actor/pg_loss"] for _ in range(STEPS)]
    if recording is not None:
        recording.close()
    digest = hashlib.sha256(repr(losses).encode())
    for value in run._weights().values():
        digest.update(getattr(value, "full_tensor", lambda v=value: v)().detach().numpy().tobytes())
    return digest.hexdigest(), recording


@functools.cache
def plain() -> str:
    """Return the digest of the training without a recorder."""
    with tempfile.TemporaryDirectory() as folder:
        return trained(Path(folder), "usual", recorded=False)[0]


def goes_on(name: str, folder: Path) -> tuple[bool, str]:
    """Return whether a training in a surrounding is the same as without a recorder, and what was recorded."""
    digest, recording = trained(folder, name)
    seen = "nothing" if recording is None else f"{recording.written} updates"
    return digest == plain(), f"recorded: {seen}{'' if digest == plain() else '; another training'}"
