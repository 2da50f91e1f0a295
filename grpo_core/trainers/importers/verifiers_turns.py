"""A branch of verifiers' message graph as a trajectory: turns with their tokens, masks and times."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from grpo_core.foreign.trajectory import Trajectory, Turn, turn_of

OF_TOKENS = ("logprobs", "trainer_logprobs", "entropies", "advantages")
"""Streams of a node that contain one number for each sampled token."""
Node = dict[str, Any]


def as_dict(value: Any) -> dict[str, Any]:
    """Return ``value`` if it is a JSON object, otherwise an empty object."""
    return value if isinstance(value, dict) else {}


def stream(node: Node, name: str) -> np.ndarray:
    """Return one number for each sampled token of a node, NaN if the stream is missing or has another length."""
    count = sum(map(bool, node.get("mask") or ()))
    if not node.get(name):
        return np.full(count, np.nan)
    values = np.array([math.nan if v is None else v for v in node.get(name) or ()], np.float64)
    return values if values.shape == (count,) else np.full(count, np.nan)


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
