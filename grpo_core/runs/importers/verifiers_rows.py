"""Episodes of verifiers as rows of a table, one a branch: from the root of a trace's messages to a leaf."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from grpo_core.runs.importers.source import Completions
from grpo_core.runs.importers.text_run import equal_groups

LIMITS = ("max_turns", "max_input_tokens", "max_output_tokens", "max_total_tokens", "compaction_failed")
"""Values of ``stop_condition`` that say that a limit ended the rollout (``Trace.is_truncated``)."""
MOST_TRACES, MOST_MESSAGES = 100_000, 1_000_000
"""Of one update: what is beyond them is left out. Branches share messages, which then count once for each."""


@dataclass
class EpisodeRows:
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
    messages: int = 0

    def add(self, episode: dict[str, Any]) -> None:
        """Add the branches of an episode's traces, or of a trace that stands alone."""
        alone = "nodes" in episode
        for trace in [episode] if alone else episode.get("traces") or []:
            if len(self.prompts) + self.errors >= MOST_TRACES:
                self.errors += 1
                continue
            trace = as_dict(trace)
            agent = as_dict(trace.get("agent"))
            if agent.get("trainable") is False:
                continue
            group = as_dict(episode.get("group")).get("id")
            task = as_dict(as_dict(trace.get("task")).get("data"))
            key = (str(group) if group is not None else json.dumps(task, sort_keys=True), str(agent.get("name")))
            try:
                for number, branch in enumerate(_branches(trace["nodes"])):
                    self.messages += len(branch)
                    if self.messages > MOST_MESSAGES:
                        raise ValueError("too many messages")
                    self._add_branch(trace, branch, key, counted=number == 0)
            except (KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError):
                self.errors += 1

    def _add_branch(self, trace: dict[str, Any], branch: list[dict[str, Any]], key: Any, *, counted: bool) -> None:
        first = next((i for i, node in enumerate(branch) if node.get("sampled")), len(branch))
        rewards = {
            str(name): (math.nan, 1.0) if reward is None else (float(reward["score"]), float(reward.get("weight", 1.0)))
            for name, reward in as_dict(trace.get("rewards")).items()
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
        self.truncated.append(is_truncated(trace))
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
        ValueError: a node's parent is not before it.
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
    messages = [as_dict(node.get("message")) for node in nodes]
    if len(messages) == 1 and isinstance(messages[0].get("content"), str):
        return str(messages[0]["content"])
    return json.dumps([{k: m[k] for k in ("role", "content") if k in m} for m in messages], ensure_ascii=False)


def is_truncated(trace: dict[str, Any]) -> bool:
    calls = [call for call in map(as_dict, trace.get("calls") or []) if call.get("error") is None]
    return trace.get("stop_condition") in LIMITS or (bool(calls) and calls[-1].get("finish_reason") == "length")


def as_dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
