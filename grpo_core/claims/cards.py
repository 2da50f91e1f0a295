"""The table of the cards' claims whose wording is fixed. They are checked against the update."""

from __future__ import annotations

from grpo_core.claims.claim import Kind, Tabled
from grpo_core.claims.groups import GROUPS
from grpo_core.claims.losses import LOSSES
from grpo_core.claims.policies import POLICIES
from grpo_core.record import Step

CARDS: dict[str, Kind[Step]] = GROUPS | LOSSES | POLICIES
"""The kinds of claims of all cards, by name."""


class Card(Tabled[Step]):
    """A claim about a number on a card."""

    KINDS = CARDS
