"""Surrogates, which are maximised per token: combinations of a ratio r and an advantage A, one file per algorithm.

A :class:`Surrogate` consists of its value, its backward function (``pull``), its clip, its explanation for one token,
the lines of its exported script, its terms in the formula strip, and the settings that have an effect under it. All
code that depends on the surrogate reads the table below; no other code refers to a surrogate by name.

The pulls are closed forms; torch's autograd on the values gives the same numbers (a test compares them for every entry
of the table).
"""

from __future__ import annotations

from importlib import import_module

from grpo_core.config.objective import SURROGATE_TITLES
from grpo_core.surrogates.batch import Batch
from grpo_core.surrogates.surrogate import Clip, Path, Ratio, Script, Surrogate

__all__ = ["SURROGATES", "Batch", "Clip", "Path", "Ratio", "Script", "Surrogate"]

SURROGATES: dict[str, Surrogate] = {name: import_module(f"{__name__}.{name}").SURROGATE for name in SURROGATE_TITLES}
"""Surrogates by name in the settings."""
