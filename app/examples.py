"""Recorded runs shipped with the program, for machines that are too slow or have no torch.

They can be viewed, but not continued.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from grpo_core.shipped import resource
from grpo_core.text import tr

RECORDED = tr(
    "Recorded on another machine; nothing is computed now. Look at any update, or begin a new run of your own."
)
TITLES = {
    "arithmetic": tr("Recorded example"),
    "smollm2": tr("SmolLM2 (recorded): the last number pays"),
    "smollm2_kl": tr("SmolLM2 (recorded): with a KL penalty"),
    "smollm2_bare": tr("SmolLM2 (recorded): the bare number pays"),
}
"""Name of each recorded run (see :func:`example`) -> its title in the list of runs."""
EXAMPLES = tuple(TITLES)


def example(name: str = EXAMPLES[0]) -> Path:
    """Return the path of a recorded run."""
    return resource("examples") / f"{name}.grpo"


@lru_cache(maxsize=256)
def is_example(path: Path) -> bool:
    """Return whether a run file is one of the shipped files, which must never be written."""
    return path.resolve().parent == resource("examples").resolve()
