"""Odd surroundings of a recorded training: the real trainer ends with the same losses and weights, to the bit.

    python benchmarks/trl/odd.py OUT NAME [plain]     # in one of ODD up to the end of the process, plain: not recorded

``bench.py`` trains in each of them, compares, and does the same for whole processes.
"""

from __future__ import annotations

import functools
import hashlib
import importlib
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parents[1])]

from benchmarks.surroundings import SURROUNDINGS, Recorded, Surrounding, hook_raises, hooks  # noqa: E402

SETTINGS = {"num_iterations": 2, "beta": 0.04, "gradient_accumulation_steps": 2}
STEPS = 4
BEGINS = ("before record", "before training")


def _unchanged(recorded: Recorded, stack: ExitStack) -> None:
    """Change nothing."""


def _of_class(**methods: Any) -> Surrounding:
    """Return the surrounding in which the trainer is of a subclass with these methods, or None in place of one."""

    def enter(recorded: Recorded, stack: ExitStack) -> None:
        plain = type(recorded.owner)
        recorded.owner.__class__ = type(f"Own{plain.__name__}", (plain,), methods)

    return enter


def _known_keys(self: Any, model: Any, inputs: dict[str, Any], *args: Any, **kwargs: Any) -> Any:
    """Fail for a batch with values that TRL does not put there."""
    assert not [name for name in inputs if "grpo_lab" in name], sorted(inputs)
    return super(type(self), self).compute_loss(model, inputs, *args, **kwargs)


def _direct(self: Any, model: Any, inputs: dict[str, Any], *args: Any, **kwargs: Any) -> Any:
    """Compute TRL's loss without the method that the recorder wraps."""
    kind: Any = type(self).__mro__[1]
    return kind._compute_loss(self, model, inputs)


def _forgets(self: Any, callback: Any) -> None:
    """Forget a callback."""


def names_of_hooks() -> list[str]:
    """Return the names of the recorder's hooks."""
    tiny_run = importlib.import_module("tiny_run")
    return hooks(tiny_run.module_at(tiny_run.RECORDER))


SECOND = "second train"
ODD: dict[str, tuple[Surrounding, str]] = {
    "usual": (_unchanged, BEGINS[0]),
    **{f"{name} {begins}": (entered, begins) for name, entered in SURROUNDINGS.items() for begins in BEGINS},
    **{f"{name} raises": (hook_raises(name), BEGINS[0]) for name in names_of_hooks()},
    "compute_loss knows its keys": (_of_class(compute_loss=_known_keys), BEGINS[0]),
    "compute_loss is another": (_of_class(compute_loss=_direct), BEGINS[0]),
    "callbacks forgotten": (_of_class(add_callback=_forgets), BEGINS[0]),
    SECOND: (_unchanged, BEGINS[0]),
    "loss renamed": (_of_class(_compute_loss=None), BEGINS[1]),
}
"""Name -> a surrounding, and when it begins."""
PROCESSES = tuple(
    f"{name} {BEGINS[0]}" for name in ("warnings are errors", "no threads", "no files", "standard error closed")
)
"""Those in which a whole process must end as it does without a recorder."""


def trained(folder: Path, name: str, stack: ExitStack, *, recorded: bool = True) -> tuple[str, Any]:
    """Train in a surrounding. Returns a digest of all losses and of the weights, and the recorder."""
    tiny_run = importlib.import_module("tiny_run")
    made = tiny_run.trainer(folder, steps=STEPS, settings=SETTINGS)
    module, recording = tiny_run.module_at(tiny_run.RECORDER), None
    (surrounding, begins), of = ODD[name], Recorded(module, made, folder / "trace")
    if begins == "before record":
        surrounding(of, stack)
    if recorded:
        recording = module.record(made, folder / "trace")
    if begins == "before training":
        surrounding(of, stack)
    for _ in range(1 + (name == SECOND)):
        made.train()
    losses = [row.get("loss") for row in made.state.log_history]
    digest = hashlib.sha256(repr(losses).encode())
    for value in made.model.state_dict().values():
        digest.update(value.detach().numpy().tobytes())
    return digest.hexdigest(), recording


@functools.cache
def plain(name: str) -> str:
    """Return the digest of a training without a recorder."""
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        return trained(Path(folder), name, stack, recorded=False)[0]


def goes_on(name: str, folder: Path) -> tuple[bool, str]:
    """Return whether a training in a surrounding is the same as without a recorder, and what was recorded."""
    with ExitStack() as stack:
        digest, recording = trained(folder, name, stack)
    if recording is not None:
        recording.close()
    same = digest == plain(SECOND if name == SECOND else "usual")
    seen = "nothing" if recording is None else f"{recording.written} steps"
    return same, f"recorded: {seen}{'' if same else '; another training'}"


def ends(name: str, folder: Path) -> tuple[bool, str]:
    """Return whether a process in a surrounding ends as without a recorder, and both exit codes."""
    done = [
        subprocess.run(
            [sys.executable, str(HERE / "odd.py"), str(folder / f"run{len(plain)}"), name, *plain],
            capture_output=True,
            text=True,
            check=False,
        )
        for plain in ([], ["plain"])
    ]
    codes, digests = [each.returncode for each in done], [each.stdout.splitlines()[-1:] for each in done]
    return codes == [0, 0] and digests[0] == digests[1], f"exit codes {codes[0]} and {codes[1]}"


if __name__ == "__main__":
    print(trained(Path(sys.argv[1]), sys.argv[2], ExitStack(), recorded=sys.argv[3:] != ["plain"])[0])
