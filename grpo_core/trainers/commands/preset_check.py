"""The option ``--check`` of ``presets``, which compares presets with the defaults of the installed TRL and verl."""

from __future__ import annotations

import argparse
import ast
import re
from collections.abc import Iterator
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from grpo_core.acting import acting_fields
from grpo_core.commands.command_line import FAILED, Instead
from grpo_core.config import PRESETS, Objective
from grpo_core.errors import GrpoError
from grpo_core.trainers.importers import trl_settings, verl_settings
from grpo_core.versions import installed

VLLM = "GRPO (TRL 1.16 with vLLM)"
OF_TRL = {"GRPO (TRL 1.16 defaults)": "dapo", VLLM: "dapo", "BNPO": "bnpo", "SAPO": "sapo", "VESPO": "vespo"}
"""Presets that are TRL's defaults with a loss type, which is that of the defaults for the first two."""
LEVELS = {"token": "token", "sequence": "sequence_sum"}
"""Level in TRL's ``vllm_importance_sampling_mode`` -> importance level."""
_SCALAR = re.compile(r'^ *(\w+): *"?([\w.+-]+)"? *$', re.MULTILINE)
_WORDS = {"null": None, "true": True, "True": True, "false": False, "False": False}


def add_option(parser: argparse.ArgumentParser) -> None:
    told = "compare them with the defaults of an installed TRL or verl"
    parser.add_argument("--check", action=Instead, run=check, nargs=0, help=told)


def check(options: argparse.Namespace) -> int:
    """Print in which presets the installed TRL and verl have other defaults.

    Return 0 if there are none, otherwise the exit code of a failure.
    """
    status = 0
    for name, theirs in (("trl", _of_trl), ("verl", _of_verl)):
        found = find_spec(name)
        if found is None or not found.submodule_search_locations:
            print(f"{name} is not installed.")
            continue
        try:
            made = dict(theirs(Path(found.submodule_search_locations[0])))
            lines = [line for preset, other in made.items() for line in drift(preset, other)]
        except (OSError, KeyError, ValueError, SyntaxError, GrpoError) as error:
            made, lines = {}, [f"its defaults cannot be read ({type(error).__name__}: {error})."]
        status = FAILED if lines else status
        for line in lines or [f"its defaults are those of the presets {', '.join(made)}."]:
            print(f"{name} {installed([name]).get(name, 'of an unknown version')}: {line}")
    return status


def drift(preset: str, theirs: Objective) -> list[str]:
    """Return a sentence for each setting with an effect in which a preset differs from a library's defaults."""
    ours = PRESETS[preset].objective
    pairs = {name: (getattr(ours, name), getattr(theirs, name)) for name in sorted(acting_fields(ours))}
    return [f"{preset}: {name} is {one}, there {other}." for name, (one, other) in pairs.items() if one != other]


def _of_trl(package: Path) -> Iterator[tuple[str, Objective]]:
    """Yield presets with the objective that the defaults of TRL in the folder ``package`` make."""
    base: dict[str, Any] = {}
    for node in ast.walk(ast.parse((package / "trainer" / "grpo_config.py").read_text("utf-8"))):
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and isinstance(node.value, ast.Call):
            for given in node.value.keywords:
                if given.arg == "default":
                    with suppress(ValueError):  # not a literal
                        base[node.target.id] = ast.literal_eval(given.value)
    for preset, kind in OF_TRL.items():
        corrected = PRESETS[preset].objective.kl_importance  # TRL's correction shows only with a penalty
        made = {**base, "beta": 1.0 if corrected else base["beta"]}
        if kind != "dapo":
            made["loss_type"] = kind
        theirs = trl_settings.objective_of(made).replace(beta=base["beta"])
        if preset == VLLM:
            level, mode = base["vllm_importance_sampling_mode"].split("_")
            corrects, cap = base["vllm_importance_sampling_correction"], base["vllm_importance_sampling_clip_max"]
            theirs = theirs.replace(
                importance_cap=cap if corrects else None,
                importance_floor=base["vllm_importance_sampling_clip_min"],
                importance_level=LEVELS[level],
                importance_mode=mode,
            )
        yield preset, theirs


def _of_verl(package: Path) -> Iterator[tuple[str, Objective]]:
    """Yield the preset with the objective that verl's defaults make with ``adv_estimator=grpo``."""
    folder = package / "trainer" / "config"
    actor, trainer = _scalars(folder / "actor" / "actor.yaml"), _scalars(folder / "ppo_trainer.yaml")
    made = {
        **actor,
        verl_settings.MODE: actor["loss_mode"],
        "algorithm.adv_estimator": "grpo",
        "algorithm.norm_adv_by_std_in_grpo": trainer["norm_adv_by_std_in_grpo"],
    }
    yield "GRPO (verl 0.9 defaults)", verl_settings.objective_of(made)


def _scalars(path: Path) -> dict[str, Any]:
    """Return the words and numbers in a YAML file by key. If a key occurs again, its first value counts."""
    found: dict[str, Any] = {}
    for name, value in _SCALAR.findall(path.read_text("utf-8")):
        found.setdefault(name, _WORDS.get(value, value))
    return found
