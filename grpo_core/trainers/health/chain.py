"""The chain from a reward to a better policy: which links hold, which one breaks, and which cannot be seen."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from grpo_core.text import plural, tr
from grpo_core.trainers.claims.faults import Fault
from grpo_core.trainers.flow import thirds
from grpo_core.trainers.health.check import Measure
from grpo_core.trainers.health.checks import CHECKS
from grpo_core.trainers.health.finding import SHORT, Finding, Link, State
from grpo_core.trainers.health.grade import Grade
from grpo_core.trainers.health.groups import rises
from grpo_core.trainers.health.limits import limit
from grpo_core.trainers.health.numerics import SAME_PROGRAM


@dataclass(frozen=True, kw_only=True)
class Row:
    """A link of the chain, as a row of :data:`CHAIN`.

    Attributes:
        measure: the check whose measure is the figure of the link.
        breaks: the checks that show, by a serious finding, that it breaks; a part of one after a colon.
        shown_by: what would have to be recorded to see it, as a sentence.
        past: whether a break that has ended is shown, too.
        logged: the check whose measure is the figure where only the trainer's log is recorded.
    """

    title: str
    measure: str
    breaks: tuple[str, ...]
    shown_by: str
    past: bool = True
    logged: str = ""

    def broken_by(self, finding: Finding) -> bool:
        kind = str(getattr(finding.what[0], "kind", "")).replace("not_finite", "non_finite")
        return finding.check in self.breaks or kind in self.breaks


BY_TRACE = tr("A trace of GRPO Lab's recorder would show it.")
CHAIN: Mapping[str, Row] = {
    "rewards": Row(
        title=tr("Rewards differ within groups"), measure="dead_groups_wrong",
        breaks=("groups_of_one", "reward_of_prompt", "dead_groups_wrong", "dead_groups_same", "dead_groups_right",
                "dead_groups_logged"),
        shown_by=tr("Completions with their rewards would show it (TRL: log_completions, verl: rollout_data_dir)."),
        past=False, logged="dead_groups_logged",
    ),
    "advantages": Row(
        title=tr("Completions get advantages"), measure="advantages_zero",
        breaks=("advantages_zero", "non_finite:advantage"),
        shown_by=tr("The column of advantages in TRL's completions, or a trace of GRPO Lab's recorder, would show it."),
    ),
    "factors": Row(
        title=tr("Masks and weights let them through"), measure="weights_gone",
        breaks=("other_weights", "weights_gone"), shown_by=BY_TRACE,
    ),
    "push": Row(title=tr("Tokens are pushed"), measure="no_push", breaks=("no_push",), shown_by=BY_TRACE),
    "gradient": Row(
        title=tr("There is a gradient"), measure="gradient_zero", breaks=("gradient_zero", "non_finite:report"),
        shown_by=tr("The line grad_norm of the trainer's log would show it."),
    ),
    "moved": Row(
        title=tr("The policy moves"), measure="policy_unmoved", breaks=("rate_zero", "policy_unmoved"),
        shown_by=tr("A trace with several passes per batch, or with prompts that return later, would show it."),
    ),
    "sampler": Row(
        title=tr("The sampler gets the new policy"), measure="sampler_differs",
        breaks=("sampler_is_reference", "sampler_still", "sampler_differs", "sampler_logged"), logged="sampler_logged",
        shown_by=tr("The sampler's own log-probabilities would show it (in TRL with use_vllm)."),
    ),
}  # fmt: skip # table
"""Every link but the last, the reward, in order."""


def chain(
    findings: Sequence[Finding],
    ended: Sequence[Finding],
    measures: Mapping[str, Sequence[Measure]],
    missing: Mapping[str, str],
    rewards: Sequence[tuple[float, float | None]],
) -> tuple[Link, ...]:
    """Return the links of the chain, in order. A reason that several links share is said at the first.

    Args:
        missing: why a check could not measure anything.
        rewards: the mean reward of each update that has one and, if known, its share of what the task pays.
    """

    said: list[str] = []

    def shown(name: str, row: Row) -> Link:
        link = partial(Link, name=name, title=row.title)
        known = [f for f in findings if row.broken_by(f)]
        now = next((f for f in known if f.grade is Grade.SERIOUS), None)
        found = now or next((f for f in ended if row.past and row.broken_by(f)), None)
        if found is not None:
            last = found.last if found.ended else None
            return link(state=State.BREAKS, what=found.what[:1], check=found.check, began=found.began, last=last)
        dead = next((f for f in known if f.check in ("dead_groups_right", "dead_groups_logged")), None)
        if dead is not None:
            why = tr("They are solved.") if dead.check == "dead_groups_right" else ""
            return link(state=State.NOT_SHOWN, what=dead.what, why=why)
        known_by = (name for name in (row.measure, row.logged) if name)
        for one in known_by:
            if (figure := CHECKS[one].measured(measures[one])) is not None:
                bad = CHECKS[one].bad or (lambda measure, first: False)
                good = not all(bad(m, measures[one][0]) for m in measures[one])
                return link(state=State.HOLDS if good else State.NOT_SHOWN, what=(figure,))
        why = missing.get(row.measure, "")
        if why == SAME_PROGRAM:
            return link(state=State.HOLDS, why=why)
        if why == CHECKS[row.measure].absent:
            return link(state=State.NOT_SHOWN, why=why)
        said.append("" if why in said else why)
        return link(state=State.HIDDEN, why=" ".join(filter(None, (said[-1], row.shown_by))))

    return (*(shown(name, row) for name, row in CHAIN.items()), _reward(rewards))


def _reward(rewards: Sequence[tuple[float, float | None]]) -> Link:
    link = partial(Link, name="reward", title=tr("The reward rises beyond its noise"))
    means = [mean for mean, _ in rewards]
    if not means:
        return link(state=State.HIDDEN, why=CHAIN["rewards"].shown_by)
    if len(means) < SHORT:
        why = plural(
            "About {count} more update is needed to compare thirds of the run.",
            "About {count} more updates are needed to compare thirds of the run.",
            SHORT - len(means),
        ).format(count=SHORT - len(means))
        return link(state=State.NOT_SHOWN, why=why)
    before, after, error = thirds(means)
    rise, needed = after - before, limit("reward_errors") * error
    what = (Fault.of("course", before=before, after=after, error=error),)
    if rises(means):
        return link(state=State.HOLDS, what=what)
    earned = [share for _, share in rewards[-max(len(rewards) // 3, 1) :] if share is not None]
    why = ""
    if earned and float(np.mean(earned)) >= limit("learned"):
        why = tr("The task is solved.")
    elif -rise >= needed > 0:
        why = tr("It falls beyond its noise.")
    elif rise > error:  # a rise at this rate grows with the updates, and its error falls with their root
        more = math.ceil(len(means) * ((needed / rise) ** (2 / 3) - 1))
        why = plural(
            "If it goes on like this, about {count} more update would show it.",
            "If it goes on like this, about {count} more updates would show it.",
            more,
        ).format(count=more)
    return link(state=State.NOT_SHOWN, what=what, why=why)


def first_break(links: Sequence[Link]) -> Link | None:
    """Return the first link that breaks and does so at the end of the run, or the one from which this follows.

    None if none does.
    """
    broken = [link for link in links if link.state is State.BREAKS and link.last is None]
    causes = [link for link in broken if link.check in CHECKS[broken[0].check].follows]
    return next(iter([*causes, *broken]), None)
