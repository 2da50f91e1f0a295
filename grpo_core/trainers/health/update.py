"""One update as input to the checks: its table of completions, its step and the trainer's reports, if available."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from grpo_core import recompute
from grpo_core.config import Settings
from grpo_core.errors import GrpoError, NotRecordedError, shortened
from grpo_core.foreign.recording import Completions, Report, Source, or_why_not
from grpo_core.kl import EXACT
from grpo_core.objective import Terms
from grpo_core.record import Step
from grpo_core.text import tr
from grpo_core.trainers.concepts import names_of
from grpo_core.trainers.flow import prefixes, signals, total_push
from grpo_core.trainers.health.finding import Evidence

LONGEST_QUOTE = 160
"""Maximum number of characters of a completion quoted in a finding."""


@dataclass(kw_only=True)
class Update:
    """An update that was read.

    Attributes:
        label: the trainer's number for the update.
        table: its completions; None if none are recorded.
        why_no_table: a sentence that says why there is no table; empty if there is one.
        step: its tokens; None if the source only contains text.
        why_no_step: a sentence that says why there is no step; empty if there is one.
        vocabulary: the text of each token by token ID, (V,); empty if the source has no text.
    """

    label: int
    settings: Settings
    table: Completions | None = None
    why_no_table: str = ""
    step: Step | None = None
    why_no_step: str = ""
    reports: tuple[Report, ...] = ()
    vocabulary: tuple[str, ...] = ()

    @property
    def completions(self) -> Completions:
        """The table of completions.

        Raises:
            NotRecordedError: there is none.
        """
        if self.table is None:
            raise NotRecordedError(self.why_no_table)
        return self.table

    @property
    def tokens(self) -> Step:
        """The step.

        Raises:
            NotRecordedError: there is none.
        """
        if self.step is None:
            raise NotRecordedError(self.why_no_step)
        return self.step

    @cached_property
    def terms(self) -> list[Terms]:
        """The loss of each pass with all intermediate values. Empty if it cannot be recomputed."""
        if self.step is None:
            return []
        try:
            with np.errstate(all="ignore"):
                return [recompute.terms(self.step, n) for n in range(self.step.passes)]
        except GrpoError:
            return []

    @cached_property
    def signals(self) -> np.ndarray | None:
        """The completions with an advantage other than 0, boolean (B,). None without tokens or advantages."""
        try:
            return None if self.step is None else signals(self.step)
        except GrpoError:
            return None

    @cached_property
    def push(self) -> float:
        """The sum of the sizes of the surrogate's pushes on all tokens, or 0 if it cannot be recomputed."""
        return total_push(self.step) if self.step is not None and self.terms else 0.0

    @cached_property
    def first_tokens(self) -> dict[int, tuple[float, float]]:
        """The log-probabilities of the beginnings of completions, from :func:`prefixes`. Empty without prompts."""
        return {} if self.step is None or self.table is None else prefixes(self.step, self.table.prompts)

    def used(self, passed: int) -> np.ndarray:
        """Return the tokens used in pass ``passed`` (0 = the first) that count in the loss, boolean (B, T)."""
        return recompute.used(self.tokens, passed)

    def pulled(self, passed: int) -> np.ndarray:
        """Return the tokens with a gradient that does not come from their advantage in pass ``passed``, boolean (B, T).

        It comes from a KL in the loss or an entropy bonus.
        """
        step, objective = self.tokens, self.settings.objective
        with np.errstate(all="ignore"):
            pull = recompute.token_gradient(step, passed)[1]
        everywhere = bool(objective.entropy_bonus) or step.entropy_coefficient is not None
        exact = objective.kl == EXACT and not objective.kl_in_reward and bool(objective.beta)
        through = step.mask & (everywhere or exact)
        return through if pull is None else through | (pull != 0)

    @property
    def earned(self) -> float | None:
        """The mean reward between the lowest and the highest that the task can pay for a prompt, from 0 to 1.

        None if that range is unknown, or if the task always pays the same.
        """
        table = self.table
        if table is None or table.reward_range is None:
            return None
        low, high = table.reward_range.T
        rows = np.isfinite(table.rewards) & (high > low)
        return float(((table.rewards - low)[rows] / (high - low)[rows]).mean()) if rows.any() else None

    def reported(self, concept: str) -> list[float]:
        """Return the trainer's numbers for a quantity of :data:`.CONCEPTS`, in the order of its reports."""
        known = [(report.numbers, names_of(concept, report.numbers)) for report in self.reports]
        return [numbers[names[0]] for numbers, names in known if names]

    def logged(self, concept: str) -> float | None:
        """Return the mean of the trainer's numbers for a quantity over its reports. None if it logged none."""
        return float(np.mean(known)) if (known := self.reported(concept)) else None

    def evidence(self, what: str, row: int | None = None, token: int | None = None) -> Evidence:
        """Return evidence in this update, with the text of the completion ``row``, if given.

        ``row`` and ``token`` are counted from 0.
        """
        text = None if row is None or self.table is None else self.table.completions[row]
        return Evidence(
            step=self.label,
            what=what,
            row=None if row is None else int(row) + 1,
            token=None if token is None else int(token) + 1,
            quote="" if text is None else shortened(text, LONGEST_QUOTE),
        )

    def token(self, row: int, place: int) -> str:
        """Return the token at index ``place`` of a completion: its text in quotation marks, or its token ID."""
        number = int(self.tokens.tokens[row, place])
        return f"“{self.vocabulary[number]}”" if 0 <= number < len(self.vocabulary) else f"‹{number}›"


def read(source: Source, position: int) -> Update:
    """Read the update at ``position``, counted from 1.

    Raises:
        RunFileError: its file is damaged, missing or malicious.
    """
    update = Update(
        label=source.labels[position - 1],
        settings=source.settings,
        reports=tuple(source.reports(position)),
        vocabulary=source.vocabulary,
    )
    update.table, update.why_no_table = or_why_not(source.completions, position)
    if update.table is not None and update.table.repeated:
        update.table, update.why_no_table = None, tr("This step has the same completions as the step before.")
    update.step, update.why_no_step = or_why_not(source.step, position)
    return update
