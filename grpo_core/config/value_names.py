"""Display names of the values of settings."""

from __future__ import annotations

from typing import Any

from grpo_core.config.fields import declared
from grpo_core.config.objective import Objective
from grpo_core.plugins import package_of
from grpo_core.text import tr

CHOICES = {
    **{word: title for about in declared(Objective).values()
       for word, title in zip(about.choices, about.choice_titles, strict=True)},
    "sgd": "SGD", "adam": "Adam", "sgd_momentum": tr("SGD with momentum"), "adamw": "AdamW",
    "adamw_mixed": tr("AdamW, mixed precision"), "adamw_8bit": tr("AdamW, 8 bits"),
    "single_peak": tr("single peak"), "double_peak": tr("double peak"),
    "linear": tr("linear"), "custom": tr("custom"), "length": tr("length"), "chain": tr("chain"),
    "arithmetic": tr("arithmetic"), "gameable": tr("gameable"), "own": tr("own"),
    "calculator": tr("calculator"),
    "sums": tr("sums in words"), "form": tr("answers in a given form"), "questions": tr("your own questions"),
    "mixed": tr("mixed"),
    "easy": tr("easy"), "sweet_spot": tr("sweet spot"), "hard": tr("hard"), "hopeless": tr("hopeless"),
    "final": tr("final answer"), "think": tr("think, then answer"), "default": tr("default"),
    "number": tr("number"), "regex": tr("regular expression"), "cpu": "CPU", "cuda": "CUDA", "mps": "MPS",
}  # fmt: skip # table, one row per line
"""Titles of our choices of settings. A choice that is not listed is shown as written, such as one of a package."""


def worded(value: Any) -> str:
    """Return the display text of a setting's value: None is shown as off, numbers without superfluous digits."""
    if value is None:
        return tr("off")
    if isinstance(value, bool):
        return tr("on") if value else tr("off")
    if isinstance(value, float):
        return f"{value:g}"
    return CHOICES.get(str(value), str(value).replace("_", " "))


def headed(value: Any) -> str:
    """Return :func:`worded` text for the start of a line, capitalised except for names such as float32 and k1."""
    text = worded(value)
    is_name = text in ("float32", "bfloat16", "k1", "k2", "k3") or bool(package_of(text))
    return text if is_name else text[:1].upper() + text[1:]
