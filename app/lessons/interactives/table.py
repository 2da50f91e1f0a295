"""Table of the interactive pictures by name.

This module is imported only when lessons are first read, so that the program starts faster.
"""

from __future__ import annotations

from app.lessons.interactives.advantage_histogram import AdvantageHistogram
from app.lessons.interactives.base import Interactive
from app.lessons.interactives.beta_sweep import BetaSweep
from app.lessons.interactives.build_group import BuildGroup
from app.lessons.interactives.climb import Climb
from app.lessons.interactives.clip import Clip
from app.lessons.interactives.credit import Credit
from app.lessons.interactives.dead_groups import DeadGroups
from app.lessons.interactives.fair_race import FairRace
from app.lessons.interactives.family_tree import FamilyTree
from app.lessons.interactives.flight_deck import FlightDeck
from app.lessons.interactives.group_size import GroupSize
from app.lessons.interactives.kl_explorer import KlExplorer
from app.lessons.interactives.memory_bill import MemoryBill
from app.lessons.interactives.one_update import OneUpdate
from app.lessons.interactives.pass_at_k import PassAtK
from app.lessons.interactives.pretrained import Pretrained
from app.lessons.interactives.ratio_explorer import RatioExplorer
from app.lessons.interactives.reported import Reported
from app.lessons.interactives.stale_samples import StaleSamples
from app.lessons.interactives.step_credit import StepCredit
from app.lessons.interactives.sweet_spot import SweetSpot
from app.lessons.interactives.temperature import Temperature
from app.lessons.interactives.token_loss import TokenLoss
from app.lessons.interactives.whose_words import WhoseWords

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
