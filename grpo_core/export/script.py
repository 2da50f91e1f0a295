"""Export of one update as a short, self-contained script that recomputes its numbers with NumPy only.

The script is written for one update: it contains only the branches of the loss that this update took, so that a student
can read it from top to bottom. It imports nothing from this program; tests ensure that its numbers are those of
``recompute``.
"""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from grpo_core import __version__, recompute
from grpo_core.baselines import BASELINES
from grpo_core.config import Objective, Settings
from grpo_core.export.script_lines import advantage_lines, loss_lines, setting_lines
from grpo_core.export.script_words import differing, one_line
from grpo_core.kl import EXACT
from grpo_core.levels import LEVELS
from grpo_core.record import Origin, Step

WIDTH = 110


def step_script(step: Step, origin: Origin, *, title: str = "", passes: Sequence[int] | None = None) -> str:
    """Return a Python script that prints advantages, ratios, clip, KL, weights, loss and gradient of ``step``.

    Args:
        origin: provides the text of its tokens.
        title: title of the run.
        passes: the passes to include, counted from 0; all by default.

    Raises:
        SettingsError: the objective needs something that the step does not have.
    """
    passes = range(step.passes) if passes is None else passes
    terms = [recompute.terms(step, n) for n in passes]
    inputs = _inputs(step, origin, passes, [float(each.loss) for each in terms])
    special = sorted({word for line in inputs for word in re.findall(r"\b(?:nan|inf)\b", line.partition("#")[0])})
    lines = [
        *_head(step, title),
        "import numpy as np",
        *([f"from numpy import {', '.join(special)}"] if special else []),
        "",
        *inputs,
        "",
        *_section("settings"),
        *setting_lines(step),
        "",
        *_section("advantage: how much better than what a completion is compared with"),
        *advantage_lines(step),
        "",
        *_section("one pass after the other"),
        *loss_lines(step, has_kl=terms[0].kl is not None),
    ]
    return "\n".join(lines) + "\n"


def _head(step: Step, title: str) -> list[str]:
    run = f" of “{one_line(title)}”" if title else ""
    settings: Settings = step.settings
    sentences = [
        f"Update {step.step}{run}: its numbers recomputed from the recorded inputs below, with NumPy only.",
        f"Written by GRPO Lab {__version__}. Settings: {differing(settings)}; seed {settings.seed}.",
        "loss = Σ W (β KL − surrogate) over B completions (rows) of at most T tokens (columns); in nats.",
    ]
    return [f"# {line}" for each in sentences for line in textwrap.wrap(each, WIDTH)] + [""]


def _section(title: str) -> list[str]:
    return [f"# {'-' * 10} {title}"]


def _inputs(step: Step, origin: Origin, passes: Sequence[int], losses: Sequence[float]) -> list[str]:
    """Return the recorded values as literals. Tables of tokens contain only entries that are not padding."""
    mask, objective = step.mask, step.settings.objective
    lines = [
        *_section("what was recorded"),
        *_mask(mask),
        "",
        "",
        "def by_token(values):",
        '    """(B, T) with one of ``values`` for each real token, 0 in padding."""',
        "    table = np.zeros(MASK.shape)",
        "    table[MASK] = values",
        "    return table",
        "",
        "",
        *_array("GROUP", step.group, "prompt of each completion (B,)"),
        *_array("REWARD", step.rewards, "(B,); nan: not scored" if np.isnan(step.rewards).any() else "(B,)"),
    ]
    if step.advantage is not None:
        given = step.advantage if step.advantage.ndim == 1 else step.advantage[mask]
        wrap = "np.array" if step.advantage.ndim == 1 else "by_token"
        lines += _array("ADVANTAGE", given, "as the source gave it", wrap)
    elif objective.credits_steps and step.step_rewards is not None:
        help = "of the step that ends with each token; nan: none ends here"
        lines += _array("STEP_REWARD", recompute.paid_for_steps(step), help, "np.array", ".reshape(MASK.shape)")
    elif BASELINES[objective.baseline].from_critic and step.values is not None:
        lines += _array("VALUE", step.values[mask], "the critic's, before each token", "by_token")
    lines += _array("OLD_LOGP", step.old_logp[mask], "log-probability of each token under the old policy", "by_token")
    if step.ref_logp is not None:
        lines += _array("REF_LOGP", step.ref_logp[mask], "by the reference policy", "by_token")
    if step.gate is not None:
        lines += ["# multiplies the surrogate in each pass", "GATE = ["]
        for n in passes:
            gate = recompute.gate_of(step, n)
            assert gate is not None
            lines += _literal("    by_token([", gate[mask], "]),")
        lines += ["]"]
    elif recompute.gate_of(step, 0) is not None:
        assert step.sampling_logp is not None
        lines += _array("SAMPLING_LOGP", step.sampling_logp[mask], "by the policy that sampled", "by_token")
        lines += _importance_weight(objective)
        lines += [f"GATE = [WEIGHT] * {len(passes)}"]
    lines += ["# log-probability of each token before each pass", "LOGP = ["]
    for n in passes:
        lines += _literal("    by_token([", step.logp[n][mask], "]),")
    lines += ["]", *_passes(step, passes), *_distributions(step, passes)]
    known = dict(enumerate(origin.vocabulary))
    words = [ascii(known.get(index, str(index + 1))) for index in step.tokens[mask].tolist()]
    return [*lines, *_wrapped("SAMPLED = [", words, "]"), *_wrapped("LAB_LOSS = [", map(repr, losses), "]")]


def _importance_weight(o: Objective) -> list[str]:
    assert o.importance_cap is not None
    lines = [f"CAP = {_number(o.importance_cap)}  # of the importance weight"]
    lines += [f"LEAST = {_number(o.importance_floor or 0.0)}"]
    lines += ["apart = np.where(MASK, OLD_LOGP - SAMPLING_LOGP, 0.0)", "apart[~np.isfinite(apart)] = 0.0"]
    level = LEVELS[o.importance_level]
    if level.of_completion:
        count = " / np.maximum(MASK.sum(1, keepdims=True), 1)" * level.by_length
        lines += [f"apart = apart.sum(1, keepdims=True){count} + np.zeros(MASK.shape)"]
    bounded = {
        "truncate": "np.clip(np.exp(apart), LEAST, CAP)",
        "mask": "np.where((np.exp(apart) < LEAST) | (np.exp(apart) > CAP), 0.0, np.exp(apart))",
    }[o.importance_mode]
    return [*lines, f"WEIGHT = {bounded}  # multiplies the surrogate"]


def _passes(step: Step, passes: Sequence[int]) -> list[str]:
    lines = [f"PASS = {[n + 1 for n in passes]}"]
    if step.part.any():
        lines += ["PART = [  # micro-batch of each completion in each pass; -1: not used"]
        for n in passes:
            lines += _wrapped("    np.array([", map(str, step.part[n].tolist()), "]),")
        lines += ["]"]
    if step.denominator is not None:
        rows = ", ".join(f"[{', '.join(_number(x) for x in step.denominator[n])}]" for n in passes)
        lines += [f"DENOMINATOR = np.array([{rows}])  # (passes, micro-batches)"]
    return lines


def _distributions(step: Step, passes: Sequence[int]) -> list[str]:
    """Return the full distributions as literals, if an exact KL or an entropy bonus needs them."""
    objective = step.settings.objective
    if not (objective.kl == EXACT or objective.entropy_bonus) or step.context is None:
        return []
    known = [step.distribution(n) for n in passes]
    lines = _array("CONTEXT", step.context[step.mask], "row below for each token's place", "by_token", ".astype(int)")
    lines += ["POLICY = [  # log-probability of every action in every context (C, V), before each pass"]
    for each in known:
        lines += ["    None,"] if each is None else _literal("    np.array([", each, f"]).reshape{each.shape},")
    lines += ["]"]
    if step.ref_dist_logp is not None:
        lines += _array(
            "REFERENCE",
            step.ref_dist_logp,
            "of the reference policy",
            "np.array",
            f".reshape{step.ref_dist_logp.shape}",
        )
    return lines


def _mask(mask: np.ndarray) -> list[str]:
    """Return the lines that define the mask: as a full rectangle, by the lengths, or position by position."""
    B, T = mask.shape
    length = mask.sum(axis=1)
    if mask.all():
        return [f"MASK = np.ones(({B}, {T}), bool)  # which places hold a token (B, T)"]
    if (mask == (np.arange(T) < length[:, None])).all():
        return [
            *_array("LENGTHS", length, "tokens of each completion (B,)"),
            f"MASK = np.arange({T}) < LENGTHS[:, None]  # which places hold a token (B, T)",
        ]
    return _array("MASK", mask.astype(int), "which places hold a token (B, T)", "np.array", f".reshape({B}, {T}) > 0")


def _array(name: str, values: np.ndarray, help: str, wrap: str = "np.array", after: str = "") -> list[str]:
    return [f"# {help}", *_literal(f"{name} = {wrap}([", values, f"]){after}")]


def _literal(before: str, values: np.ndarray, after: str) -> list[str]:
    return _wrapped(before, map(_number, np.ravel(values)), after)


def _wrapped(before: str, parts: Iterable[str], after: str) -> list[str]:
    """Return the lines of a list of ``parts``, wrapped to the line width."""
    whole = f"{before}{', '.join(parts := list(parts))}{after}"
    if len(whole) <= WIDTH:
        return [whole]
    inner = " " * (len(before) - len(before.lstrip()) + 4)
    lines, line = [before], ""
    for part in parts:
        if line and len(inner) + len(line) + len(part) + 2 > WIDTH:
            lines.append(inner + line.rstrip())
            line = ""
        line += f"{part}, "
    return [*lines, inner + line.rstrip(), " " * (len(inner) - 4) + after]


def _number(value: Any) -> str:
    """Return the shortest representation that reads back as the same number in its own precision."""
    if isinstance(value, (np.bool_, np.integer)):
        return str(int(value))
    if not math.isfinite(value):
        return str(float(value))
    return str(value) if isinstance(value, np.floating) else repr(float(value))
