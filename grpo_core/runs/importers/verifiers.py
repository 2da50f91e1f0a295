"""verifiers' and prime-rl's ``traces.jsonl``: an episode a line, its traces as graphs of messages.

Read from verifiers 0.4.0. A branch, from the root to a leaf, is a row; a rollout of several branches counts once in its
group. Numbers of tokens are rounded to four decimals by the writer and belong to no optimizer step.
"""

from __future__ import annotations

import json
import math
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from grpo_core.errors import RunFileError
from grpo_core.regular_file import opened_regular
from grpo_core.runs.importers.jsonl import LONGEST_LINE, Place, placed_lines
from grpo_core.runs.importers.source import Completions, file_stamp
from grpo_core.runs.importers.text_run import TextRun, equal_groups, names_in, numbered, recorded_settings
from grpo_core.text import tr

FILE = "traces.jsonl"
FOLDERS = ("train/all", "train/effective", "all", "effective", "")
"""Where a step's file lies, in the order of preference: what was filtered away shows dead groups."""
LIMITS = ("max_turns", "max_input_tokens", "max_output_tokens", "max_total_tokens", "compaction_failed")
"""Values of ``stop_condition`` that say that a limit ended the rollout (``Trace.is_truncated``)."""


def probe(path: Path) -> bool:
    """Whether ``path`` is a file of episodes, or the folder of a run that has some."""
    if path.is_file():
        return path.suffix == ".jsonl" and _first_line_fits(path)
    return (path / FILE).is_file() or bool(_step_files(path))


def _first_line_fits(path: Path) -> bool:
    first = next(iter(placed_lines(path, [], note_torn=True)), (0, None))[1]
    return isinstance(first, dict) and (isinstance(first.get("traces"), list) or isinstance(first.get("nodes"), list))


def _step_files(path: Path) -> list[tuple[int, Path]]:
    """(training step, file) of prime-rl's folders ``step_12``."""
    for home in (path / "rollouts", path):
        if home.is_dir():
            folders = numbered(home, names_in(home), "step_", "")
            files = [(n, next((f for where in FOLDERS if (f := d / where / FILE).is_file()), None)) for n, d in folders]
            known = [(n, file) for n, file in files if file is not None]
            if known:
                return known
    return []


class VerifiersRun(TextRun):
    """Episodes of verifiers, by training step where they name one."""

    why_no_step = tr(
        "These traces hold log-probabilities rounded to four decimals, which belong to no optimizer step, and not the "
        "settings of the loss, so there is no loss to recompute; prime-rl's token export "
        "(trainer.enable_token_export) has more of it."
    )

    def __init__(self, path: Path) -> None:
        super().__init__(path, path.parent.name if path.is_file() else path.name, recorded_settings("verifiers"))
        self._places: dict[int, list[tuple[Path, int]]] = {}
        self._looked = _Looked()
        self.note(tr("Numbers of tokens have four decimals in these files: smaller differences mean nothing."))
        self.refresh()
        if self.labels:
            last = self.completions(len(self.labels))
            size = int(np.bincount(last.group[last.counted]).max()) if last.counted is not None else 1
            self.settings = recorded_settings("verifiers", names=last.reward_names, group_size=size)

    def refresh(self) -> int:
        single = self.path if self.path.is_file() else self.path / FILE
        if single.is_file():
            self._places = self._index(single)
        else:
            self._places = {number: [(file, -1)] for number, file in _step_files(self.path)}
        self.labels = sorted(self._places)
        return len(self.labels)

    def _index(self, file: Path) -> dict[int, list[tuple[Path, int]]]:
        """Training step -> the lines of one file that belong to it; evaluation is left out beside training.

        What was read before is not read again: the file is taken to grow at its end, unless it is another one now.
        """
        facts = file.stat()
        if self._looked.file != facts.st_ino or facts.st_size < self._looked.at.byte:
            self._looked = _Looked(file=facts.st_ino)
        looked = self._looked
        looked.forget_unfinished()
        notes: list[str] = []
        for start, episode in placed_lines(file, notes, note_torn=True, at=looked.at):
            run = _dict(_dict(episode).get("run"))
            work = _dict(run.get("work"))
            step = work.get("step")
            where = looked.evaluation if "eval" in (run.get("type"), work.get("type")) else looked.training
            where.setdefault(step if type(step) is int and 0 <= step < 2**60 else 1, []).append((file, start))
        if looked.training and looked.evaluation:
            notes.append(
                tr("{count} episodes of evaluation stand among those of training; they are left out.").format(
                    count=sum(map(len, looked.evaluation.values()))
                )
            )
        elif looked.evaluation:
            notes.append(tr("These are episodes of an evaluation; nothing was trained on them."))
        for sentence in notes:
            self.note(sentence)
        return looked.training or looked.evaluation

    def stamp(self, position: int) -> tuple[int, ...]:
        places = self._places[self.labels[position - 1]]
        file, start = places[0]
        if start < 0:
            return file_stamp(file, len(places))
        return (*file_stamp(file)[2:], self.labels[position - 1], zlib.crc32(repr([p for _, p in places]).encode()))

    def completions(self, position: int) -> Completions:
        notes: list[str] = []
        rows = _Rows()
        for episode in _episodes(self._places[self.labels[position - 1]], notes):
            rows.add(_dict(episode))
        if rows.errors:
            notes.append(
                tr("Step {label}: {count} traces are not what verifiers writes and are left out.").format(
                    label=self.labels[position - 1], count=rows.errors
                )
            )
        for sentence in notes:
            self.note(sentence)
        if not rows.prompts:
            raise RunFileError(
                tr("Step {label} of {name} holds no trace that can be read.").format(
                    label=self.labels[position - 1], name=self.title
                )
            )
        return rows.table()


@dataclass
class _Looked:
    """What is known of a file that is being written.

    Attributes:
        file: which file it is, by its number on the disk.
        at: behind the last line that was whole.
        training, evaluation: training step -> the lines that belong to it.
    """

    file: int = -1
    at: Place = field(default_factory=Place)
    training: dict[int, list[tuple[Path, int]]] = field(default_factory=dict)
    evaluation: dict[int, list[tuple[Path, int]]] = field(default_factory=dict)

    def forget_unfinished(self) -> None:
        """A last line without its end is read again."""
        for steps in (self.training, self.evaluation):
            for step, places in list(steps.items()):
                steps[step] = [place for place in places if place[1] < self.at.byte]
                if not steps[step]:
                    del steps[step]


def _episodes(places: list[tuple[Path, int]], notes: list[str]) -> Iterator[Any]:
    """The episodes at those places; a place of −1 is the whole file."""
    for file, start in places:
        if start < 0:
            yield from (value for _, value in placed_lines(file, notes, note_torn=True))
    starts = [(file, start) for file, start in places if start >= 0]
    if starts:
        with opened_regular(starts[0][0]) as opened:
            for _, start in starts:
                opened.seek(start)
                try:
                    yield json.loads(opened.readline(LONGEST_LINE))
                except (ValueError, RecursionError):
                    continue


@dataclass
class _Rows:
    """Rows of the table as they are found, one a branch."""

    prompts: list[str] = field(default_factory=list)
    completions: list[str] = field(default_factory=list)
    keys: list[Any] = field(default_factory=list)
    counted: list[bool] = field(default_factory=list)
    rewards: list[dict[str, tuple[float, float]]] = field(default_factory=list)
    advantage: list[float] = field(default_factory=list)
    length: list[int] = field(default_factory=list)
    truncated: list[bool] = field(default_factory=list)
    entropy: list[float] = field(default_factory=list)
    sampling: list[np.ndarray] = field(default_factory=list)
    training: list[np.ndarray] = field(default_factory=list)
    errors: int = 0

    def add(self, episode: dict[str, Any]) -> None:
        """Add the branches of an episode's traces, or of a trace that stands alone."""
        alone = "nodes" in episode
        for trace in [episode] if alone else episode.get("traces") or []:
            trace = _dict(trace)
            agent = _dict(trace.get("agent"))
            if agent.get("trainable") is False:
                continue
            group = _dict(episode.get("group")).get("id")
            task = _dict(_dict(trace.get("task")).get("data"))
            key = (str(group) if group is not None else json.dumps(task, sort_keys=True), str(agent.get("name")))
            try:
                for number, branch in enumerate(_branches(trace["nodes"])):
                    self._add_branch(trace, branch, key, counted=number == 0)
            except (KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError):
                self.errors += 1

    def _add_branch(self, trace: dict[str, Any], branch: list[dict[str, Any]], key: Any, *, counted: bool) -> None:
        first = next((i for i, node in enumerate(branch) if node.get("sampled")), len(branch))
        rewards = {
            str(name): (math.nan, 1.0) if reward is None else (float(reward["score"]), float(reward.get("weight", 1.0)))
            for name, reward in _dict(trace.get("rewards")).items()
        }
        sampled = [sum(map(bool, node.get("mask") or ())) for node in branch]
        streams = {name: _stream(branch, sampled, name) for name in _STREAMS}
        advantage = streams["advantages"][~np.isnan(streams["advantages"])]
        entropy = streams["entropies"][~np.isnan(streams["entropies"])]
        self.prompts.append(_conversation(branch[:first]))
        self.completions.append(_conversation(branch[first:]))
        self.keys.append(key)
        self.counted.append(counted)
        self.rewards.append(rewards)
        self.advantage.append(float(advantage.mean()) if len(advantage) else math.nan)
        self.length.append(sum(sampled))
        self.truncated.append(_truncated(trace))
        self.entropy.append(float(entropy.mean()) if len(entropy) else math.nan)
        self.sampling.append(streams["logprobs"])
        self.training.append(streams["trainer_logprobs"])

    def table(self) -> Completions:
        """All rows as a table."""
        names = tuple(dict.fromkeys(name for row in self.rewards for name in row))
        blank = (math.nan, 1.0)
        parts = np.array([[row.get(name, blank)[0] for name in names] for row in self.rewards]).reshape(-1, len(names))
        factor = np.array([[row.get(name, blank)[1] for name in names] for row in self.rewards]).reshape(parts.shape)
        known = ~np.isnan(parts)
        total = np.where(known.any(axis=1), np.where(known, parts * factor, 0.0).sum(axis=1), np.nan)
        advantage, entropy = np.array(self.advantage), np.array(self.entropy)
        scored = any(np.isfinite(row).any() for row in self.training)
        return Completions(
            prompts=tuple(self.prompts), completions=tuple(self.completions), group=equal_groups(self.keys),
            rewards=total, reward_names=names, reward_parts=parts if names else None,
            reward_weights=tuple(map(float, factor[0])) if len(factor) and (factor == factor[0]).all() else (),
            advantage=None if np.isnan(advantage).all() else advantage,
            length=np.array(self.length) if any(self.length) else None, truncated=np.array(self.truncated),
            counted=np.array(self.counted), entropy=None if np.isnan(entropy).all() else entropy,
            sampling_logp=tuple(self.sampling) if any(self.length) else None,
            training_logp=tuple(self.training) if scored else None,
        )  # fmt: skip


_STREAMS = ("logprobs", "trainer_logprobs", "entropies", "advantages")


def _stream(branch: list[dict[str, Any]], sampled: list[int], name: str) -> np.ndarray:
    """One number for each sampled token of a branch, NaN where a node has none, or another number of them."""
    pieces = []
    for node, count in zip(branch, sampled, strict=True):
        values = np.array([math.nan if v is None else v for v in node.get(name) or ()], np.float64)
        pieces.append(values if values.shape == (count,) else np.full(count, np.nan))
    return np.concatenate(pieces) if pieces else np.zeros(0)


def _branches(nodes: list[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    """The nodes from the root to each leaf that has sampled tokens or text.

    Raises:
        ValueError: a node's parent does not stand before it.
    """
    parents = [node.get("parent") for node in nodes]
    for i, parent in enumerate(parents):
        if parent is not None and not (type(parent) is int and 0 <= parent < i):
            raise ValueError("a parent must stand before its child")
    for leaf in sorted(set(range(len(nodes))) - {p for p in parents if p is not None}):
        path: list[dict[str, Any]] = []
        at: int | None = leaf
        while at is not None:
            path.append(nodes[at])
            at = parents[at]
        if any(node.get("sampled") for node in path):
            yield path[::-1]


def _conversation(nodes: list[dict[str, Any]]) -> str:
    """One message's text as it is, several messages as JSON."""
    messages = [_dict(node.get("message")) for node in nodes]
    if len(messages) == 1 and isinstance(messages[0].get("content"), str):
        return str(messages[0]["content"])
    return json.dumps([{k: m[k] for k in ("role", "content") if k in m} for m in messages], ensure_ascii=False)


def _truncated(trace: dict[str, Any]) -> bool:
    calls = [call for call in map(_dict, trace.get("calls") or []) if call.get("error") is None]
    return trace.get("stop_condition") in LIMITS or (bool(calls) and calls[-1].get("finish_reason") == "length")


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
