"""Data type for a link of the chain from a reward to a better policy, as shown by a run."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from grpo_core.claims.claim import Claim, told
from grpo_core.text import tr
from grpo_core.trainers.claims.measured import Measured


class State(StrEnum):
    """State of a link, as far as the record shows it."""

    HOLDS = "holds"
    BREAKS = "breaks"
    NOT_SHOWN = "not shown"
    HIDDEN = "cannot be seen"

    @property
    def word(self) -> str:
        return {
            State.HOLDS: tr("holds"),
            State.BREAKS: tr("breaks"),
            State.NOT_SHOWN: tr("not shown"),
            State.HIDDEN: tr("cannot be seen"),
        }[self]


@dataclass(frozen=True, kw_only=True)
class Link:
    """A link of the chain, as shown by a run.

    Attributes:
        name: name of the link, as in ``CHAIN``.
        what: the figures, as claims about the run or about the course of a measure.
        why: a sentence on what is missing; empty if nothing is.
        check: the check whose finding says that it breaks; empty if it does not.
        began, last: the trainer's numbers for the first and the last update in which it breaks; None if it does not,
            or if it still breaks at the end.
    """

    name: str
    title: str
    state: State
    what: tuple[Claim[Any], ...] = ()
    why: str = ""
    check: str = ""
    began: int | None = None
    last: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "state", State(self.state))  # from another process it arrives as a string

    @property
    def line(self) -> str:
        state = self.state.word
        if self.began is not None:
            state = (
                tr("breaks from step {began} on").format(began=self.began)
                if self.last is None
                else tr("breaks from step {began} to {last}").format(began=self.began, last=self.last)
            )
        facts = {"title": self.title, "state": state, "said": told(self.what)}
        if self.state is State.HOLDS and self.what and isinstance(self.what[0], Measured):
            return tr("{title}: {state} ({said}).").format(**facts)
        line = tr("{title}: {state}. {said}").format(**facts)
        return " ".join(filter(None, (line.strip(), self.why)))
