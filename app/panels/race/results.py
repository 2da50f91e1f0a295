"""A race as it comes in: the runs of each algorithm, what is said of them in a table, and which of them coincide."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from app.panels.race.lanes import look
from app.panels.race.plan import Plan
from app.plotting.table_model import Column, Marked
from grpo_core.experiments.ensemble import Ensemble, band

SAME = 1e-9
"""Runs whose every measure differs by no more are the same: what is left is rounding."""
COLUMNS = (
    Column("name", "Algorithm", chars=22, kind="text"),
    Column("reward", "Reward", chars=7, help="Expected reward after the last update, median of the seeds"),
    Column("low", "25 %", chars=7, help="A quarter of the seeds end with less reward than this"),
    Column("high", "75 %", chars=7, help="A quarter of the seeds end with more reward than this"),
    Column("best", "Best action", chars=7, help="Probability of the best action after the last update, median"),
    Column("kl", "KL", chars=6, unit="nats", help="KL from the start after the last update, median, in nats"),
    Column("stuck", "Stuck", chars=5, decimals=2, help="Share of the seeds whose likeliest action is not the best"),
    Column("wrong", "Wrong way", chars=5, decimals=2, help="Share of all steps that pointed away from more reward"),
    Column("snr", "SNR", chars=5, decimals=2, help="Signal-to-noise ratio of the step at update 1"),
    Column("mu", "μ", chars=3, help="Passes over each batch"),
    Column("group", "G", chars=3, help="Completions a prompt in each batch"),
    Column("updates", "Updates", chars=6),
    Column("samples", "Samples", chars=7, help="Completions drawn by each run"),
)


class Results:
    """What has come of a race.

    Attributes:
        plan: what was asked for.
        lanes: name -> its runs, in the order in which they came.
        note: why not all have come; empty while they come and once they have.
    """

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.lanes: dict[str, Ensemble] = {}
        self.note = ""
        self._groups: tuple[int, list[list[str]]] = (0, [])

    @property
    def complete(self) -> bool:
        """Whether every algorithm has come in."""
        return len(self.lanes) == len(self.plan.names)

    def take(self, name: str, runs: Ensemble) -> None:
        """The next algorithm has come in."""
        self.lanes[name] = runs

    def rows(self) -> list[list[object]]:
        """The summary, one row an algorithm; see :data:`COLUMNS`."""
        return [[Marked(name, look(name).meaning), *_numbers(runs)] for name, runs in self.lanes.items()]

    def ranked(self) -> list[tuple[str, float]]:
        """Names and median final rewards, the best first."""
        found = [(name, float(np.median(runs.measures["reward"][-1]))) for name, runs in self.lanes.items()]
        return sorted(found, key=lambda one: -one[1])

    def coinciding(self) -> list[list[str]]:
        """Groups of algorithms whose runs are the same, seed by seed and update by update, but for rounding."""
        if self._groups[0] != len(self.lanes):
            self._groups = len(self.lanes), self._coinciding()
        return self._groups[1]

    def _coinciding(self) -> list[list[str]]:
        groups: list[list[str]] = []
        grouped: set[str] = set()
        for one, other in combinations(self.lanes, 2):
            if not same(self.lanes[one], self.lanes[other]):
                continue
            home = next((group for group in groups if one in group), None)
            if home is None and one not in grouped:
                home = [one]
                groups.append(home)
            if home is not None and other not in grouped:
                home.append(other)
            grouped |= {one, other}
        return groups


def same(one: Ensemble, other: Ensemble) -> bool:
    """Whether two algorithms have made the same runs."""
    if not np.allclose(one.policy, other.policy, rtol=0, atol=SAME):
        return False
    measured = [(values, other.measures[name]) for name, values in one.measures.items()]
    return all(a.shape == b.shape and np.allclose(a, b, rtol=SAME, atol=SAME) for a, b in measured)


def _numbers(runs: Ensemble) -> list[object]:
    reward, low, high = (float(limit) for limit in band(runs.measures["reward"][-1]))
    best, kl = (float(np.median(runs.measures[name][-1])) for name in ("best_prob", "kl"))
    settings, updates = runs.settings, len(runs.measures["reward"]) - 1
    return [
        reward, low, high, best, kl, runs.stuck, float(runs.wrong_way.mean()), float(runs.signal_to_noise[0]),
        settings.learner.mu, settings.learner.group_size, updates, int(runs.samples[-1]),
    ]  # fmt: skip
