"""Recorded runs that are built by a test: of completions, of tokens, and of reports alone."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from grpo_core.config import Settings
from grpo_core.errors import NotRecordedError
from grpo_core.foreign.recording import Completions, Report, Source
from grpo_core.record import Step
from grpo_core.trainers.health import Diagnosis
from grpo_core.trainers.importers.trace import Trace
from tests.core.steps import random_step
from tests.core.trainers.trace_files import DATA


def recorded(**objective: Any) -> Settings:
    """Return settings of a run that another program trained."""
    return Trace(DATA / "grpo").settings.replace({f"objective.{name}": value for name, value in objective.items()})


def completions(rewards: ArrayLike = (0.0, 1.0) * 4, **columns: Any) -> Completions:
    """Return a table of groups of four. By default every other completion is right."""
    paid = np.asarray(rewards, float)
    count = len(paid)
    texts: dict[str, Any] = {"prompts": ("p",) * count, "completions": tuple(f"answer {i}" for i in range(count))}
    return Completions(**{**texts, "group": np.arange(count) // 4, "rewards": paid, **columns})


def in_parts(parts: np.ndarray, weights: tuple[float, ...], names: Sequence[str] = "abc") -> Completions:
    """Return a table whose rewards have the components (B, K)."""
    named = tuple(names[: len(weights)])
    return completions(parts @ np.array(weights), reward_parts=parts, reward_names=named, reward_weights=weights)


class Tables(Source):
    """A source of tables."""

    def __init__(self, tables: list[Completions], settings: Settings | None = None) -> None:
        self.tables, self.settings, self.title, self.notes = tables, settings or recorded(), "made", []
        self.labels = list(range(1, len(tables) + 1))

    def completions(self, position: int) -> Completions:
        return self.tables[position - 1]

    def step(self, position: int) -> Step:
        raise NotRecordedError("texts alone")

    def reports(self, position: int) -> list[Report]:
        return []


class Steps(Tables):
    """A source of tables and tokens."""

    def __init__(self, steps: list[Step], tables: list[Completions], settings: Settings) -> None:
        super().__init__(tables, settings)
        self.steps = steps

    def step(self, position: int) -> Step:
        return self.steps[position - 1]


class Logs(Tables):
    """A source of reports alone."""

    def __init__(self, reports: list[dict[str, float]]) -> None:
        super().__init__([completions([0.0])] * len(reports))
        self.numbers = reports

    def completions(self, position: int) -> Completions:
        raise NotRecordedError("reports alone")

    def reports(self, position: int) -> list[Report]:
        return [Report(step=position, numbers=self.numbers[position - 1], steps=1)]


def of_steps(settings: Settings, count: int, change: Callable[[Step], Step] | None = None, **shape: int) -> Steps:
    """Return a run of ``count`` updates of random numbers, each of one pass over two prompts."""
    size: dict[str, Any] = {"passes": 1, "prompts": 2, "tokens": 3, "contexts": 3, "actions": 6} | shape
    plain = [random_step(n + 1, settings=settings, **size) for n in range(count)]
    plain = [dataclasses.replace(step, dist_logp=None, ref_dist_logp=None) for step in plain]
    steps = [change(step) if change else step for step in plain]
    ones = [np.ones(len(step.rewards)) for step in steps]
    tables = [completions(s.rewards, group=s.group, entropy=one) for s, one in zip(steps, ones, strict=True)]
    return Steps(steps, tables, settings)


def with_reports(run: Any, reports: dict[str, float]) -> Any:
    """Return the run with the same report after every update."""
    run.reports = lambda position: [Report(step=position, numbers=reports)]
    return run


def said(result: Diagnosis, check: str) -> str:
    """Return the text of a finding, empty if there is none."""
    return next((finding.sentence for finding in result.findings if finding.check == check), "")


def not_looked_at(result: Diagnosis, check: str) -> str:
    """Return why a check was skipped, empty if it was not."""
    return next((one.why for one in result.not_looked_at if one.check == check), "")
