"""All settings of a run as one frozen object that can be converted to JSON and back."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from grpo_core.config.bandit_task import LANDSCAPES, BanditTask
from grpo_core.config.fields import About, about, check, declared, structural
from grpo_core.config.language import IN_WORDS, LanguageTask, Model
from grpo_core.config.objective import Objective
from grpo_core.config.recorded import RecordedTask
from grpo_core.config.training import Learner, Optimizer
from grpo_core.errors import SettingsError
from grpo_core.text import plural, tr
from grpo_core.versions import FIRST, newest


@dataclass(frozen=True, kw_only=True)
class Settings:
    """All settings of a run: objective, sampling, optimizer, task and seed."""

    objective: Objective = field(default_factory=Objective)
    learner: Learner = field(default_factory=Learner)
    optimizer: Optimizer = field(default_factory=Optimizer)
    task: BanditTask | LanguageTask | RecordedTask = field(default_factory=BanditTask)
    model: Model = field(default_factory=Model)
    seed: int = structural(
        7, tr("Seed of all random numbers of the run."), tr("Seed"), limits=(0, 2**63 - 1), usual=(0, 100)
    )

    def __post_init__(self) -> None:
        check(self)
        if self.is_recorded:
            return  # values that the trainer accepted are not rejected here
        if self.objective.baseline == "given" and not self.learner.critic:
            raise SettingsError(
                "objective.baseline", "given", tr("this baseline needs the critic; switch the critic on")
            )
        if self.objective.credits_steps and (self.is_language or self.bandit.landscape != "chain"):
            raise SettingsError(
                "objective.credit", "process", tr("this task has no rewards for steps; choose “outcome”, or the chain")
            )
        if isinstance(self.task, LanguageTask):
            self._check_language(self.task)

    def _check_language(self, task: LanguageTask) -> None:
        """Reject what a language model does not support, and what only one from a folder, or only ours, supports."""
        if self.optimizer.step_length is not None:
            raise SettingsError(
                "optimizer.step_length", self.optimizer.step_length, tr("only the step of a bandit can be rescaled")
            )
        if self.learner.staleness:
            raise SettingsError(
                "learner.staleness",
                self.learner.staleness,
                tr("only a bandit's sampler can lag behind; a language model samples from its current weights"),
            )
        if task.in_words and not self.model.folder:
            raise SettingsError(
                "task.problem", task.problem, tr("the character model cannot read words; choose a model from a folder")
            )
        if self.model.folder and not task.in_words:
            raise SettingsError(
                "task.problem",
                task.problem,
                tr("this task is for the character model; for a model from a folder choose one of {choices}").format(
                    choices=", ".join(IN_WORDS)
                ),
            )
        context = self.model.longest_text
        if context is not None and task.max_tokens >= context:
            raise SettingsError(
                "task.max_tokens",
                task.max_tokens,
                plural(
                    "the prompt and the completion share a context of {context} token; choose fewer",
                    "the prompt and the completion share a context of {context} tokens; choose fewer",
                    context,
                ).format(context=context),
            )

    def changes_for_prompts(self, file: str) -> dict[str, Any]:
        """Return the changes with which a language model trains on the prompts in ``file``. A model from a folder is
        paid for the final answer that its completion marks.
        """
        task = {"task.problem": "questions", "task.checker": "final"} if self.model.folder else {"task.problem": "own"}
        return {**task, "task.file": file}

    @property
    def bandit(self) -> BanditTask:
        assert isinstance(self.task, BanditTask)
        return self.task

    @property
    def language(self) -> LanguageTask:
        assert isinstance(self.task, LanguageTask)
        return self.task

    @property
    def trained(self) -> BanditTask | LanguageTask:
        """The task of a run that this program trains."""
        assert not isinstance(self.task, RecordedTask)
        return self.task

    @property
    def recorded(self) -> RecordedTask:
        assert isinstance(self.task, RecordedTask)
        return self.task

    @property
    def is_recorded(self) -> bool:
        """Whether another program trained the run, which can then be viewed and recomputed but not continued."""
        return isinstance(self.task, RecordedTask)

    @property
    def is_language(self) -> bool:
        """Whether the policy is a language model, rather than the bandit's tabular policy."""
        return isinstance(self.task, LanguageTask)

    def get(self, path: str) -> Any:
        """Return the value at a dotted path such as ``objective.beta``."""
        value: Any = self
        for part in path.split("."):
            value = getattr(value, part)
        return value

    def has(self, path: str) -> bool:
        """Return whether there is a setting or a group of settings at a dotted path, with this kind of task."""
        part, _, name = path.partition(".")
        return part in _names(Settings) and (not name or name in _names(getattr(self, part).__class__))

    def replace(self, changes: dict[str, Any]) -> Settings:
        """Return a copy with new values at dotted paths. All are changed together before validation.

        Raises:
            SettingsError: a value is not allowed; the message names the dotted path.
        """
        parts: dict[str, dict[str, Any]] = {}
        top: dict[str, Any] = {}
        for path, value in changes.items():
            if not self.has(path):
                raise SettingsError(path, value, tr("there is no such setting"))
            outer, _, inner = path.rpartition(".")
            if outer:
                parts.setdefault(outer, {})[inner] = value
            else:
                top[path] = value
        for outer, inner_changes in parts.items():
            try:
                top[outer] = dataclasses.replace(top.get(outer, getattr(self, outer)), **inner_changes)
            except SettingsError as error:
                raise error.within(outer) from None
        return dataclasses.replace(self, **top)

    def differences(self, other: Settings) -> dict[str, tuple[Any, Any]]:
        """Return a dict of dotted path -> (value here, value in ``other``) for all settings that differ. Tasks of
        different kinds have a single entry, “task”.
        """
        different: dict[str, tuple[Any, Any]] = {}
        if type(self.task) is not type(other.task):
            different["task"] = self.task, other.task
        for part in _names(Settings):
            mine, theirs = getattr(self, part), getattr(other, part)
            if part != "seed" and type(mine) is type(theirs):
                different |= {f"{part}.{name}": values for name, values in differing(mine, theirs).items()}
        return different | ({"seed": (self.seed, other.seed)} if self.seed != other.seed else {})

    def refuse_structural(self, wanted: Settings) -> None:
        """Check that a run under these settings can continue under ``wanted``.

        Raises:
            SettingsError: it cannot; the message names the first structural setting that differs.
        """
        if type(self.task) is not type(wanted.task):
            raise SettingsError(
                "task", wanted.task, tr("this run has another kind of policy; start a new run to change it")
            )
        for path, (now, then) in self.structural_differences(wanted).items():
            raise SettingsError(
                path, then, tr("this run was started with {now}; start a new run to change it").format(now=now)
            )

    def structural_differences(self, wanted: Settings) -> dict[str, tuple[Any, Any]]:
        """Return a dict of dotted path -> (value here, value in ``wanted``) for all differences that need a new run.

        Replacing a landscape's rewards with custom ones, or the reverse, leaves the actions unchanged, so that the run
        can continue.
        """
        return {
            path: (now, then)
            for path, (now, then) in self.differences(wanted).items()
            if not is_live(path)
            and not (path == "task.landscape" and {now, then} <= set(LANDSCAPES) and "custom" in (now, then))
        }

    def to_json(self) -> str:
        """Return one line of JSON with every field, which :func:`grpo_core.config.settings_from_json` parses."""
        return json.dumps(dataclasses.asdict(self), sort_keys=True)

    def stored(self) -> str:
        """Return JSON for files, with only the non-default values and the field that identifies the kind of task.

        This allows an older program that lacks a newer setting to read a run that does not use it.
        """
        kept: dict[str, Any] = {}
        for path, value in self._differing():
            part, _, name = path.rpartition(".")
            (kept.setdefault(part, {}) if part else kept)[name] = value
        return json.dumps(kept, sort_keys=True)

    @property
    def needs(self) -> str:
        """The oldest version of the program that can read :meth:`stored`."""
        return newest(FIRST, *(described_at(path, type(self.task)).needs(value) for path, value in self._differing()))

    def _differing(self) -> Iterator[tuple[str, Any]]:
        """Yield path and value of settings that are not the default's, or that identify the kind of task."""
        usual = Settings(task=type(self.task)())
        for path, value in flat(self).items():
            if value != usual.get(path) or path.removeprefix("task.") in KINDS.values():
                yield path, value


def is_live(path: str) -> bool:
    """Return whether a change at a dotted path takes effect at the next update, without a new run."""
    if path == "task":
        return False
    return described_at(path).live


def described_at(path: str, task: type | None = None) -> About:
    """Return the description of the setting at a dotted path. ``task`` selects the kind of task if several have it.

    Raises:
        KeyError: there is no such setting.
    """
    part, _, name = path.rpartition(".")
    owners = OWNERS[part] if part != "task" or task is None else (task,)
    for owner in owners:
        if name in declared(owner):
            return about(owner, name)
    raise KeyError(path)


def language_settings() -> Settings:
    """Return the default settings of a language model: one pass, AdamW, and a learning rate at which the
    checkpoint's habit is unlearned in a few dozen updates.
    """
    return Settings(
        task=LanguageTask(),
        learner=Learner(mu=1),
        optimizer=Optimizer(kind="adam", learning_rate=1e-4, max_grad_norm=1.0),
    )


def default_threads() -> int:
    """Return the default number of threads for a model from a folder: half the number of logical processors, which is
    the number of cores if each runs two threads.

    torch's threads wait for each other by spinning, so with one thread per processor any other process delays them all.
    With two threads on two busy cores, an update of a tiny model took 5 to 15 times as long as with one.
    """
    return min(max((os.cpu_count() or 1) // 2, 1), 256)


def folder_settings(folder: str, digest: str = "") -> Settings:
    """Return the default settings of a model from a folder: sums in words, learned by an adapter in a few dozen
    updates.

    Args:
        folder: the model's folder, or its GGUF file.
        digest: digest of its files, from :func:`grpo_core.trainers.hf.folder.look`.
    """
    return Settings(
        task=LanguageTask(problem="sums", prompts=4, max_tokens=12, held_out=9, accuracy_every=5),
        learner=Learner(mu=1),
        optimizer=Optimizer(kind="adam", learning_rate=1e-3, max_grad_norm=1.0),
        objective=Objective(beta=0.0),
        model=Model(folder=folder, digest=digest, threads=default_threads(), watch_reference=False),
    )


def flat(settings: Settings) -> dict[str, Any]:
    """Return every leaf of ``settings`` by its dotted path."""
    leaves: dict[str, Any] = {}
    for part in _names(Settings):
        value = getattr(settings, part)
        names = _names(value.__class__)
        leaves |= {f"{part}.{name}": getattr(value, name) for name in names} if names else {part: value}
    return leaves


def differing(mine: Any, theirs: Any) -> dict[str, tuple[Any, Any]]:
    """Return field -> (value in ``mine``, value in ``theirs``) for all fields in which two dataclasses differ."""
    if mine is theirs:  # as after a change elsewhere in the settings
        return {}
    here, there = vars(mine), vars(theirs)
    return {name: (here[name], there[name]) for name in _names(mine.__class__) if here[name] != there[name]}


@cache
def _names(owner: type) -> tuple[str, ...]:
    """Return the names of a dataclass's fields, none for any other class. Cached, for fast comparisons."""
    return tuple(field.name for field in dataclasses.fields(owner)) if dataclasses.is_dataclass(owner) else ()


KINDS: dict[type, str] = {LanguageTask: "problem", RecordedTask: "source"}
"""Class of each kind of task -> the field whose presence in JSON identifies it. JSON with none of these fields
describes a bandit's task.
"""
OWNERS: dict[str, tuple[type, ...]] = {
    "": (Settings,),
    "objective": (Objective,),
    "learner": (Learner,),
    "optimizer": (Optimizer,),
    "task": (BanditTask, LanguageTask, RecordedTask),
    "model": (Model,),
}
"""Dotted prefix -> the dataclasses whose fields have that prefix."""
