"""Table of the interactive pictures by name, and the table of all names for lesson files in the README of the lessons.

This module is imported only when lessons are first read, so that the program starts faster.
"""

from __future__ import annotations

from app.panel_registry import lesson_panels
from app.teaching.lessons.interactives.advantages import AdvantageHistogram, BuildGroup
from app.teaching.lessons.interactives.base import Interactive
from app.teaching.lessons.interactives.beta_sweep import BetaSweep
from app.teaching.lessons.interactives.by_hand import KlExplorer, RatioExplorer
from app.teaching.lessons.interactives.chances import DeadGroups, SweetSpot
from app.teaching.lessons.interactives.clip import Clip
from app.teaching.lessons.interactives.credit import Credit, StepCredit
from app.teaching.lessons.interactives.fair_race import FairRace
from app.teaching.lessons.interactives.family_tree import FamilyTree
from app.teaching.lessons.interactives.flight_deck import FlightDeck
from app.teaching.lessons.interactives.group_size import GroupSize
from app.teaching.lessons.interactives.memory_bill import MemoryBill
from app.teaching.lessons.interactives.one_update import OneUpdate, TokenLoss
from app.teaching.lessons.interactives.over_training import Climb, PassAtK
from app.teaching.lessons.interactives.reported import Reported
from app.teaching.lessons.interactives.sampled_answers import Pretrained, WhoseWords
from app.teaching.lessons.interactives.stale_samples import StaleSamples
from app.teaching.lessons.interactives.temperature import Temperature
from grpo_core.metrics import METRICS

INTERACTIVES: dict[str, type[Interactive]] = {
    "climb": Climb,
    "sweet_spot": SweetSpot,
    "one_update": OneUpdate,
    "build_group": BuildGroup,
    "dead_groups": DeadGroups,
    "clip": Clip,
    "credit": Credit,
    "token_loss": TokenLoss,
    "step_credit": StepCredit,
    "beta_sweep": BetaSweep,
    "fair_race": FairRace,
    "kl_explorer": KlExplorer,
    "ratio_explorer": RatioExplorer,
    "advantage_histogram": AdvantageHistogram,
    "memory_bill": MemoryBill,
    "group_size": GroupSize,
    "temperature": Temperature,
    "family_tree": FamilyTree,
    "flight_deck": FlightDeck,
    "reported": Reported,
    "pretrained": Pretrained,
    "whose_words": WhoseWords,
    "pass_at_k": PassAtK,
    "stale_samples": StaleSamples,
}
"""The interactive pictures by their names in lesson files."""


BEGIN, END = "<!-- words: written by “grpo-lab lesson words” -->", "<!-- end of words -->"
"""Lines in the README that enclose the table."""


def words_table() -> str:
    """Return a Markdown table of pictures with the numbers that a step can use, of panels, and of metrics."""
    lines = ["| `interactive` | `state` | `check` | `show` | `hides` |", "|---|---|---|---|---|"]
    for name, interactive in sorted(INTERACTIVES.items()):
        offer = interactive.offer
        cells = (
            ", ".join(f"`{word}`" for word in words) for words in (offer.state, offer.checks, offer.shows, offer.parts)
        )
        lines.append(f"| `{name}` | " + " | ".join(cells) + " |")
    panels, metrics = (", ".join(f"`{name}`" for name in names) for names in (sorted(lesson_panels()), sorted(METRICS)))
    return "\n".join([*lines, "", "`panels`: " + panels, "", "`metric`: " + metrics])
