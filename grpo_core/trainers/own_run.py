"""Adapter that gives a run of this program the interface of recorded runs, so that it can be diagnosed."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from grpo_core.bandit import tasks
from grpo_core.config import LanguageTask, Settings
from grpo_core.config.language import REWARDS
from grpo_core.config.recorded import RecordedTask
from grpo_core.errors import RunFileError
from grpo_core.foreign.readers import recorded
from grpo_core.foreign.recording import Completions, Report, Source
from grpo_core.foreign.trajectory import ToolCall, Trajectory, Turn
from grpo_core.lm import rewards
from grpo_core.lm.calculator import CLOSE, NAME, UNKNOWN, call_in, exchanges
from grpo_core.lm.vocabulary import STOP, decode
from grpo_core.premises import drawn_by_earlier
from grpo_core.recompute import advantage
from grpo_core.record import Origin, Step
from grpo_core.runs.reader import RunReader
from grpo_core.runs.run_file import is_run_file
from grpo_core.text import tr
from grpo_core.texts import completion_text, question_text

NO_OTHER_TRAINER = tr(
    "This program trained the run. The functions that show its losses also computed them, so there is no other "
    "result to compare them with."
)


class OwnRun(Source):
    """A run file of this program.

    Its settings are those of a recorded run with the same loss, because a diagnosis supports no others. The updates are
    those in this file: if the file was thinned, the remaining ones; in a branch, those after the branch point.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        with RunReader.open(path) as reader:
            self.title = reader.meta.title or path.stem
            self._origin = reader.origin
            self.vocabulary = self._origin.vocabulary
            self.settings = as_recorded(reader.meta.settings, self._origin)
            self.notes: list[str] = []
            self.labels: list[int] = []
            self._read_labels(reader)

    def step(self, position: int) -> Step:
        step = self._step(position)
        titles = {reward.name: reward.title for reward in REWARDS.values()}
        names = tuple(titles.get(name, name) for name in step.part_names or ()) or self._origin.reward_names
        settings = as_recorded(step.settings, dataclasses.replace(self._origin, reward_names=names))
        return dataclasses.replace(step, settings=settings, part_names=None)

    def completions(self, position: int) -> Completions:
        step = self._step(position)
        given = advantage(step)
        if given.ndim == 2:  # by token: the one of largest size
            given = np.take_along_axis(given, np.abs(given).argmax(axis=1)[:, None], axis=1)[:, 0]
        age = min(step.settings.learner.staleness, step.step - 1) if drawn_by_earlier(step) else 0  # of its sampler
        return dataclasses.replace(
            table_of(step, self._origin, given),
            staleness=np.full(len(step.group), age, float),
            sampled_by_trainer=True,
            reward_range=reward_range(step),
        )

    def reports(self, position: int) -> Sequence[Report]:
        step = self._step(position)
        norm = step.measurements.get("grad_norm")
        return () if norm is None else (Report(step=step.step, numbers={"grad_norm": norm}),)

    def refresh(self) -> int:
        with RunReader.open(self.path) as reader:
            self._read_labels(reader)
        return len(self.labels)

    def _read_labels(self, reader: RunReader) -> None:
        self.labels = []
        number = reader.kept(reader.first, forwards=True)
        while number is not None:
            self.labels.append(number)
            number = reader.kept(number + 1, forwards=True)

    def _step(self, position: int) -> Step:
        with RunReader.open(self.path) as reader:
            return reader.step(self.labels[position - 1])


def is_own(path: Path) -> bool:
    """Return whether ``path`` is a run file, whatever its name, of a run that this program trained."""
    if not is_run_file(path):
        return False
    try:
        with RunReader.open(path) as reader:
            return not reader.meta.settings.is_recorded
    except RunFileError:
        return False


@contextmanager
def opened(path: Path, poll: Callable[[], None], columns: str = "") -> Iterator[Source]:
    """Open the run at ``path``, either a run of this program or one that another trainer recorded.

    ``columns`` says what columns of the user's own mean (:func:`grpo_core.foreign.formats.open_source`).
    """
    if is_own(path):
        yield OwnRun(path)
    else:
        with recorded(path, poll, columns) as source:
            yield source


def as_recorded(settings: Settings, origin: Origin) -> Settings:
    """Return the settings of a recorded run that was trained with this loss and this learner."""
    task = RecordedTask(
        source=tr("GRPO Lab"),
        reward_names=origin.reward_names,
        max_tokens=settings.task.longest,
        trainer_settings=settings.to_json(),
    )
    return Settings(objective=settings.objective, learner=settings.learner, task=task)


def reward_range(step: Step) -> np.ndarray | None:
    """Return the lowest and the highest reward that the task can pay for each completion, (B, 2). None if unknown."""
    if not step.settings.is_language:
        return np.asarray(tasks.reward_range(step.settings.bandit)[step.group])
    known = rewards.reward_range(step.settings.language)
    return None if known is None else np.tile(known, (len(step.group), 1))


def table_of(step: Step, origin: Origin, given: np.ndarray | None) -> Completions:
    """Return the completions of an update of this program, with advantages ``given`` (B,) per completion, if any."""
    questions = {group: question_text(step, group, origin) for group in np.unique(step.group).tolist()}
    return Completions(
        prompts=tuple(questions[group] for group in step.group.tolist()),
        completions=tuple(completion_text(step, row, origin) for row in range(len(step.group))),
        group=step.group,
        rewards=step.rewards,
        advantage=given if given is None or given.ndim == 1 else None,
        length=step.there.sum(axis=-1),
        trajectories=trajectories(step),
    )


def trajectories(step: Step) -> tuple[Trajectory, ...] | None:
    """Return the turns of each completion, (B,). None if the task has no tool that replies."""
    settings = step.settings
    if not settings.is_language or not settings.language.has_tool or step.prompt_tokens is None:
        return None
    prompts = [decode([*tokens, -1]) for tokens in step.prompt_tokens]
    return tuple(
        trajectory(prompts[group], tokens[there], mask[there], settings.language)
        for group, tokens, there, mask in zip(step.group, step.tokens, step.there, step.mask, strict=True)
    )


def trajectory(prompt: str, tokens: np.ndarray, mask: np.ndarray, task: LanguageTask) -> Trajectory:
    """Split a completion into turns.

    Args:
        tokens: (L,), tokens of the completion, including the end-of-sequence token.
        mask: (L,) boolean, tokens that the loss counts.
    """
    turns, place = list[Turn](), 0
    for said, answered in exchanges(decode(tokens)):
        end = place + len(said)
        end += int(not answered and end < len(tokens))  # the end-of-sequence token
        call = (ToolCall(name=NAME, arguments=call_in(said)),) if said.endswith(CLOSE) else ()
        if end > place:
            turns.append(_turn(mask[place:end], role="assistant", text=said, sampled=True, calls=call))
        place = end
        if answered:
            end += len(answered)
            what = f"error: {answered}" if answered.startswith(UNKNOWN) else answered
            turns.append(_turn(mask[place:end], role="tool", tool=NAME, text=what.strip(), sampled=False))
            place = end
    return Trajectory(
        prompt=(Turn(role="user", text=prompt, sampled=False, in_loss=0),),
        turns=tuple(turns),
        ended=_why_ended(tokens, task),
    )


def _turn(mask: np.ndarray, **said: Any) -> Turn:
    """Create a turn whose tokens have the loss mask ``mask`` (n,), boolean."""
    return Turn(tokens=len(mask), body=len(mask), in_loss=int(mask.sum()), **said)


def _why_ended(tokens: np.ndarray, task: LanguageTask) -> str:
    """Return why a completion ended, a key of :data:`grpo_core.foreign.trajectory.ENDS`."""
    if len(tokens) and tokens[-1] == STOP:
        return "agent_completed"
    if decode(tokens).count(CLOSE) > task.calls:
        return "max_turns"
    return "max_output_tokens"
