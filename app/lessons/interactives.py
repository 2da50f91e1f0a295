"""The small interactives by name. Imported when lessons are first read: a start is shorter without them."""

from __future__ import annotations

from app.lessons.advantage_histogram import AdvantageHistogram
from app.lessons.beta_sweep import BetaSweep
from app.lessons.clip import Clip
from app.lessons.credit import Credit
from app.lessons.dead_groups import DeadGroups
from app.lessons.fair_race import FairRace
from app.lessons.family_tree import FamilyTree
from app.lessons.flight_deck import FlightDeck
from app.lessons.group import BuildGroup
from app.lessons.group_size import GroupSize
from app.lessons.interactive import Interactive
from app.lessons.kl_explorer import KlExplorer
from app.lessons.memory_bill import MemoryBill
from app.lessons.one_update import OneUpdate
from app.lessons.ratio_explorer import RatioExplorer
from app.lessons.reported import Reported
from app.lessons.step_credit import StepCredit
from app.lessons.temperature import Temperature

INTERACTIVES: dict[str, type[Interactive]] = {
    "one_update": OneUpdate,
    "build_group": BuildGroup,
    "dead_groups": DeadGroups,
    "clip": Clip,
    "credit": Credit,
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
}
"""What the files call the small interactives."""
