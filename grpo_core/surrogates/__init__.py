"""Surrogates, which are maximised per token: combinations of a ratio r and an advantage A, one file per algorithm.

A :class:`Surrogate` consists of its value, its backward function (``pull``), its clip, its explanation for one token,
the lines of its exported script, its terms in the formula strip, and the settings that have an effect under it. All
code that depends on the surrogate reads the table below; no other code refers to a surrogate by name. Installed
packages can add rows (:mod:`grpo_core.plugins`).

The pulls are closed forms; torch's autograd on the values gives the same numbers (a test compares them for every entry
of the table).
"""

from __future__ import annotations

from dataclasses import fields
from importlib import import_module

from grpo_core.config import Objective
from grpo_core.config.objective import SURROGATE_TITLES
from grpo_core.plugins import Rows, of_type
from grpo_core.surrogates.surrogate import Batch, Clip, Path, Ratio, Script, Surrogate
from grpo_core.text import tr

__all__ = ["SURROGATES", "Batch", "Clip", "Path", "Ratio", "Script", "Surrogate"]


def _fault(row: object) -> str:
    if not isinstance(row, Surrogate):
        return of_type(Surrogate)(row)
    unknown = sorted({*row.knobs} - {field.name for field in fields(Objective)})
    return (unknown and tr("the objective has no setting “{name}”").format(name=unknown[0])) or ""


_OURS = {name: import_module(f"{__name__}.{name}").SURROGATE for name in SURROGATE_TITLES}
SURROGATES: Rows[Surrogate] = Rows("surrogate", _OURS, _fault, "grpo_core.testing.surrogates:CHECKS")
"""Surrogates by name in the settings."""
