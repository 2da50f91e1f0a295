"""Severity grades of findings."""

from __future__ import annotations

from enum import StrEnum

from grpo_core.text import tr


class Grade(StrEnum):
    """The severity of a finding, worst first.

    ``SERIOUS``: training cannot work like this. ``WARNING``: training works worse than it could. ``NOTICE``: worth
    knowing; occurs in healthy runs, too.
    """

    SERIOUS = "serious"
    WARNING = "warning"
    NOTICE = "notice"

    @property
    def rank(self) -> int:
        """Rank of the grade, 0 for the worst."""
        return list(Grade).index(self)

    @property
    def word(self) -> str:
        return {Grade.SERIOUS: tr("serious"), Grade.WARNING: tr("warning"), Grade.NOTICE: tr("notice")}[self]
