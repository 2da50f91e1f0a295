"""Episodes of verifiers as rows of a table, one per branch from the root of a trace's messages to a leaf, and as
trajectories: turns with their tokens, masks and times."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from grpo_core.errors import shortened
from grpo_core.foreign.recording import Completions
from grpo_core.foreign.trajectory import MOST_CHARACTERS, Trajectory, Turn, as_text, turn_of
from grpo_core.text import plural, tr
from grpo_core.trainers.importers.rows import Row, table_of
from grpo_core.trainers.importers.verifiers_tokens import Node, RowTokens, as_dict, row_tokens, stream

OF_TOKENS = ("logprobs", "trainer_logprobs", "entropies", "advantages")
"""Streams of a node that contain one number for each sampled token."""
LIMITS = ("max_turns", "max_input_tokens", "max_output_tokens", "max_total_tokens", "compaction_failed")
"""Values of ``stop_condition`` for rollouts that a limit ended (``Trace.is_truncated``)."""
MOST_TRACES, MOST_MESSAGES = 100_000, 1_000_000
"""Maximum numbers of traces and of messages for one update, of which shared ones count once per branch."""
MOST_TURNS = 60_000
"""Maximum number of turns and tool calls in the trajectories of one update. If there are more, only text is shown."""


@dataclass
class EpisodeRows:
    """Rows of the table, one per branch, added episode by episode.

    Attributes:
        label: the training step that uses the episodes.
    """

    label: int
    with_tokens: bool = False

    rows: list[Row] = field(default_factory=list)
    counted: list[bool] = field(default_factory=list)
    sampling: list[np.ndarray] = field(default_factory=list)
    training: list[np.ndarray] = field(default_factory=list)
    trajectories: list[Trajectory | None] = field(default_factory=list)
    staleness: list[float] = field(default_factory=list)
    tokens: list[RowTokens | None] = field(default_factory=list)
    errors: int = 0
    why: str = ""
    messages: int = 0
    turns: int = 0
    characters: int = 0

    def add(self, episode: dict[str, Any]) -> None:
        """Add the branches of an episode's traces, or of a single trace."""
        alone = "nodes" in episode
        policy = as_dict(as_dict(as_dict(episode.get("run")).get("work")).get("policy")).get("start")
        age = float(self.label - policy) if type(policy) is int else math.nan
        for trace in [episode] if alone else episode.get("traces") or []:
            if len(self.rows) + self.errors >= MOST_TRACES:
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
                graph = Graph(trace)
                for number, branch in enumerate(branches(trace["nodes"])):
                    self.messages += len(branch)
                    if self.messages > MOST_MESSAGES:
                        raise ValueError(
                            plural(
                                "there is more than {most:,} message",
                                "there are more than {most:,} messages",
                                MOST_MESSAGES,
                            ).format(most=MOST_MESSAGES)
                        )
                    self._add_branch(graph, branch, key, counted=number == 0)
                    self.staleness.append(age)
            except (KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError) as error:
                self.errors += 1
                self.why = self.why or shortened(
                    tr("{name} is missing").format(name=error) if isinstance(error, KeyError) else str(error), 200
                )

    def _add_branch(self, graph: Graph, path: Sequence[int], key: Any, *, counted: bool) -> None:
        trace = graph.trace
        rewards = {str(name): _paid(reward) for name, reward in as_dict(trace.get("rewards")).items()}
        found = graph.trajectory(path, rewards)
        streams = {name: graph.stream(path, name) for name in OF_TOKENS}
        advantage = streams["advantages"][~np.isnan(streams["advantages"])]
        entropy = streams["entropies"][~np.isnan(streams["entropies"])]
        if self.with_tokens:
            self.tokens.append(row_tokens(trace["nodes"], path, found))
        prompt, completion = _conversation(found.prompt), _conversation(found.turns)
        row = Row(
            prompt=prompt,
            completion=completion,
            group=key,
            parts={name: score for name, (score, _) in rewards.items()},
            weights={name: weight for name, (_, weight) in rewards.items()},
            metrics={name: _number(value) for name, value in metrics_of(trace).items()},
            advantage=float(advantage.mean()) if len(advantage) else math.nan,
            length=len(streams["logprobs"]),
            truncated=is_truncated(trace),
            entropy=float(entropy.mean()) if len(entropy) else math.nan,
        )
        self.rows.append(row)
        self.counted.append(counted)
        self.sampling.append(streams["logprobs"])
        self.training.append(streams["trainer_logprobs"])
        self.turns += len(path) + found.called
        self.characters += len(prompt) + len(completion)
        small = self.turns <= MOST_TURNS and self.characters <= MOST_CHARACTERS
        self.trajectories.append(found if small else None)

    def table(self) -> Completions:
        table, staleness = table_of(self.rows, tuple(self.trajectories)), np.array(self.staleness)
        sampled, scored = any(map(len, self.sampling)), any(np.isfinite(row).any() for row in self.training)
        return replace(
            table,
            length=table.length if sampled else None,
            counted=np.array(self.counted),
            sampling_logp=tuple(self.sampling) if sampled else None,
            training_logp=tuple(self.training) if scored else None,
            staleness=None if np.isnan(staleness).all() else staleness,
        )


def _paid(reward: Any) -> tuple[float, float]:
    """Return the score and the weight of a reward.

    ``reward`` is an object with both, a number, or None if the completion was not scored.
    """
    if isinstance(reward, dict):
        return float(reward["score"]), float(reward.get("weight", 1.0))
    return _number(reward), 1.0


def _number(value: Any) -> float:
    return math.nan if value is None else float(value)


def branches(nodes: list[dict[str, Any]], *, sampled: bool = True) -> Iterator[list[int]]:
    """Yield the node indices from the root to each leaf, by default only if it has sampled tokens or text.

    Raises:
        ValueError: a node comes before its parent.
    """
    parents = [node.get("parent") for node in nodes]
    for i, parent in enumerate(parents):
        if parent is not None and not (type(parent) is int and 0 <= parent < i):
            raise ValueError(
                tr("message {number} does not come after the message that it follows").format(number=i + 1)
            )
    for leaf in sorted(set(range(len(nodes))) - {p for p in parents if p is not None}):
        path: list[int] = []
        at: int | None = leaf
        while at is not None:
            path.append(at)
            at = parents[at]
        if not sampled or any(nodes[place].get("sampled") for place in path):
            yield path[::-1]


def _conversation(turns: Sequence[Turn]) -> str:
    """Return the text of a single message, or of several messages with their speakers."""
    alone = len(turns) == 1 and not turns[0].calls and not turns[0].reasoning
    return turns[0].text if alone else as_text(turns)


def is_truncated(trace: dict[str, Any]) -> bool:
    """Return whether a limit ended the trace."""
    return trace.get("stop_condition") in LIMITS or finish_reason(trace) == "length"


class Graph:
    """The messages of a trace, each parsed once even if several branches share it."""

    def __init__(self, trace: dict[str, Any]) -> None:
        self.trace = trace
        self._nodes: list[Node] = trace["nodes"]
        self._spans = _spans(trace)
        self._read: dict[int, Turn] = {}
        self._streams: dict[tuple[int, str], np.ndarray] = {}

    def stream(self, path: Sequence[int], name: str) -> np.ndarray:
        """Return one number for each sampled token of a branch, NaN if a node has none."""
        for place in path:
            if (place, name) not in self._streams:
                self._streams[place, name] = stream(self._nodes[place], name)
        return np.concatenate([self._streams[place, name] for place in path])

    def trajectory(self, path: Sequence[int], rewards: dict[str, tuple[float, float]]) -> Trajectory:
        """Return the trajectory of a branch.

        Branches must be read in order, because the loss counts a message in the first branch that contains it.

        Args:
            path: indices of its nodes, from the root to the leaf.
            rewards: name -> (score, weight).

        Raises:
            LookupError, TypeError, ValueError: a node is not what verifiers writes.
        """
        shared = next((i for i, place in enumerate(path) if place not in self._read), len(path))
        turns = []
        for i, place in enumerate(path):
            turn = self._read.get(place)
            if turn is None:
                turn = _turn(self._nodes[place], self._seconds(path, i))
                later = None if turn.in_loss is None else 0
                self._read[place] = replace(turn, in_loss=later, also_trained=0)
            turns.append(turn)
        first = next((i for i, turn in enumerate(turns) if turn.sampled), len(turns))
        return Trajectory(
            prompt=tuple(turns[:first]),
            turns=tuple(turns[first:]),
            shared=shared,
            ended=_ended(self.trace),
            errors=_errors(self.trace),
            metrics=tuple(metrics_of(self.trace).items()),
            rewards=tuple((name, None if math.isnan(score) else score, w) for name, (score, w) in rewards.items()),
        )

    def _seconds(self, path: Sequence[int], i: int) -> float | None:
        """Return the duration of the call that wrote a message, or for one between two replies, the time between."""
        start, end = self._spans.get(path[i], (0.0, 0.0))
        between = path[i] not in self._spans and 0 < i < len(path) - 1
        if between and path[i - 1] in self._spans and path[i + 1] in self._spans:
            start, end = self._spans[path[i - 1]][1], self._spans[path[i + 1]][0]
        return end - start if math.isfinite(end - start) and end > start > 0 else None


def _spans(trace: dict[str, Any]) -> dict[int, tuple[float, float]]:
    """Return the start and end, in seconds, of the call that wrote each node."""
    return {
        call["node"]: (float(time["start"]), float(time["end"]))
        for call in map(as_dict, trace.get("calls") or [])
        if type(call.get("node")) is int and {"start", "end"} <= (time := as_dict(call.get("time"))).keys()
    }


def metrics_of(trace: dict[str, Any]) -> dict[str, float | None]:
    """Return the numbers, other than rewards, that the environment measured."""
    return {
        name: None if value is None else float(value)
        for name, value in as_dict(trace.get("metrics")).items()
        if value is None or isinstance(value, int | float)
    }


def finish_reason(trace: dict[str, Any]) -> str | None:
    """Return the reason why the last reply ended, in the provider's words."""
    calls = [call for call in map(as_dict, trace.get("calls") or []) if call.get("error") is None]
    return calls[-1].get("finish_reason") if calls else None


def _turn(node: Node, seconds: float | None) -> Turn:
    """Return a node's message, with the recorded data of its tokens."""
    message = {"content": None, **as_dict(node.get("message"))}
    ids, mask, body = node.get("token_ids") or [], node.get("mask") or [], node.get("is_content") or []
    sampled = bool(node.get("sampled"))
    if not ids or len(ids) != len(mask):
        return turn_of(message, sampled=sampled, seconds=seconds)
    known = np.array(mask, bool)
    weights = [w for w in as_dict(node.get("loss_weights")).values() if isinstance(w, list) and len(w) == len(mask)]
    weighted = np.array([[bool(value) for value in w] for w in weights]).reshape(-1, len(mask)).any(axis=0)
    if len(body) == len(ids):
        of_text = sum(map(bool, body))
    else:  # the chat template's scaffold precedes the sampled tokens
        of_text = len(ids) - int(known.argmax()) if sampled and known.any() else len(ids)
    gap = _mean(np.abs(stream(node, "trainer_logprobs") - stream(node, "logprobs"))) if known.any() else None
    return turn_of(
        message,
        sampled=sampled,
        tokens=len(ids),
        body=of_text,
        in_loss=int(known.sum()),
        also_trained=int((weighted & ~known).sum()),
        seconds=seconds,
        advantage=_mean(stream(node, "advantages")),
        entropy=_mean(stream(node, "entropies")),
        sampler_gap=gap,
    )


def _mean(values: np.ndarray) -> float | None:
    known = values[np.isfinite(values)] if values.size else values
    return float(known.mean()) if known.size else None


def _ended(trace: dict[str, Any]) -> str:
    stop = trace.get("stop_condition")
    stop = stop if isinstance(stop, str) else ""
    if trace.get("is_timeout") is True:
        return "timeout"
    return "length" if stop in ("", "agent_completed") and finish_reason(trace) == "length" else stop


def _errors(trace: dict[str, Any]) -> tuple[str, ...]:
    """Return the errors of the trace and of its calls, which are often the same, without duplicates."""
    failed = [*(trace.get("errors") or []), *(as_dict(call).get("error") for call in trace.get("calls") or [])]
    said = [f"{error.get('type')}: {error.get('message')}" for error in map(as_dict, failed) if error]
    return tuple(dict.fromkeys(said))
