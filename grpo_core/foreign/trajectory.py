"""A trajectory: the messages of a rollout by the model, tools and users, and which of their tokens count in the
loss."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from grpo_core.parsing import from_json
from grpo_core.text import tr

ERROR = re.compile(r"\s*(\{\s*[\"']error[\"']|error\b|traceback \(most recent call)", re.IGNORECASE)
"""Pattern of the beginning of a tool's result that looks like an error.

No trainer marks errors; TRL writes ``{'error': ...}``.
"""

MOST_CHARACTERS = 16_000_000
"""Maximum number of characters per update that are split into turns. The rest is shown as plain text."""
ENDS = {
    "agent_completed": tr("the model ended it"),
    "user_closed": tr("the user ended it"),
    "empty_action": tr("the model said nothing"),
    "error": tr("an error ended it"),
    "max_turns": tr("the limit on turns ended it"),
    "max_input_tokens": tr("the limit on tokens read ended it"),
    "max_output_tokens": tr("the limit on tokens written ended it"),
    "max_total_tokens": tr("the limit on tokens ended it"),
    "compaction_failed": tr("it could not be shortened to fit the model's context"),
    "length": tr("the limit on a reply's tokens ended it"),
    "timeout": tr("the limit on time ended it"),
}
"""Reasons why a trajectory ended, by their names in verifiers 0.4.0."""


@dataclass(frozen=True, kw_only=True)
class ToolCall:
    """A tool call.

    Attributes:
        arguments: the arguments as the model wrote them, usually JSON.
        id: identifier with which the result refers to the call, if any.
    """

    name: str
    arguments: str = ""
    id: str = ""


@dataclass(frozen=True, kw_only=True)
class Turn:
    """One message of a conversation. Numbers are None if they are not recorded.

    Attributes:
        role: the speaker: "system", "user", "assistant", "tool", or another name used by the source.
        text: the text; empty for a tool call without text.
        reasoning: what the model wrote before the text, if the source records it separately.
        tool: name of the tool that returned this result; empty if unknown, or if the message is not a tool's result.
        sampled: whether the policy wrote the message; None if unknown.
        tokens: number of tokens that the message adds to the sequence, including those of the chat template.
        body: number of these tokens that are in the text itself.
        in_loss: number of its tokens that the loss mask includes.
        also_trained: number of its tokens outside the mask that are trained with a separate weight (prime-rl's echo).
        seconds: duration of the model's call; for other messages, the time between the calls before and after.
        advantage: mean advantage of its tokens in the loss.
        entropy: mean entropy of the same tokens, in nats.
        sampler_gap: mean absolute difference between the trainer's and the sampler's log-probabilities, in nats.
    """

    role: str
    text: str
    reasoning: str = ""
    calls: tuple[ToolCall, ...] = ()
    tool: str = ""
    sampled: bool | None = None
    tokens: int | None = None
    body: int | None = None
    in_loss: int | None = None
    also_trained: int = 0
    seconds: float | None = None
    advantage: float | None = None
    entropy: float | None = None
    sampler_gap: float | None = None

    @property
    def failed(self) -> bool:
        """Whether the message is a tool's result that looks like an error."""
        return self.role == "tool" and ERROR.match(self.text) is not None


@dataclass(frozen=True, kw_only=True)
class Trajectory:
    """One branch of a rollout: a conversation from its first message to its last.

    Attributes:
        prompt: the messages before the policy's first one.
        turns: the remaining messages.
        rewards: name, score (None if missing) and weight of each reward function.
        metrics: name and value of each number reported by the environment that is not a reward.
        ended: why the rollout ended, in the source's terms; empty if not recorded.
        errors: errors outside the conversation, in the source's words.
        shared: number of messages, including the prompt, that this branch shares with an earlier branch of the rollout.
            The loss counts them only in the earlier branch.
    """

    prompt: tuple[Turn, ...]
    turns: tuple[Turn, ...]
    rewards: tuple[tuple[str, float | None, float], ...] = ()
    metrics: tuple[tuple[str, float | None], ...] = ()
    ended: str = ""
    errors: tuple[str, ...] = ()
    shared: int = 0

    @property
    def spoken(self) -> int:
        """Number of the policy's turns."""
        return sum(turn.role == "assistant" for turn in self.turns)

    @property
    def called(self) -> int:
        return sum(len(turn.calls) for turn in self.turns)

    @property
    def failures(self) -> int:
        """Number of results that look like errors, plus errors outside the conversation."""
        return sum(turn.failed for turn in self.turns) + len(self.errors)

    @property
    def answered(self) -> bool:
        """Whether the conversation contains a message from a tool or a user after the prompt."""
        return any(turn.role != "assistant" for turn in self.turns)

    @property
    def masked(self) -> bool:
        """Whether the source records which tokens count in the loss."""
        return any(turn.in_loss is not None for turn in self.turns)

    def why_ended(self) -> str:
        """Return the reason why the rollout ended, in words. An unknown name is returned unchanged."""
        return ENDS.get(self.ended, self.ended)


def turn_of(message: Mapping[str, Any], **measured: Any) -> Turn:
    """Convert a chat message in the format of verifiers, TRL and OpenAI's API to a turn.

    Args:
        message: message with ``role``, and ``content`` or ``tool_calls``.

    Raises:
        LookupError: the message has no role, or neither content nor calls.
        TypeError: a part of the message has the wrong type.
    """
    role, content, calls = message["role"], message.get("content"), message.get("tool_calls") or ()
    if not isinstance(role, str) or not isinstance(calls, list | tuple):
        raise TypeError("a message has a role and a list of calls")
    if "content" not in message and not calls:
        raise LookupError("a message has content or calls")
    reasoning, tool = message.get("reasoning_content"), message.get("name")
    return Turn(
        role=role,
        text=_content(content),
        reasoning=reasoning if isinstance(reasoning, str) else "",
        calls=tuple(_call(call) for call in calls),
        tool=tool if isinstance(tool, str) and role == "tool" else "",
        **measured,
    )


def turns_in(text: str | None) -> tuple[Turn, ...] | None:
    """Parse a conversation in JSON. Return None if the text is not one."""
    if text is None or not text.lstrip().startswith("[{"):
        return None
    try:
        return tuple(turn_of(message) for message in from_json(text))
    except (ValueError, RecursionError, LookupError, TypeError, AttributeError):
        return None


def trajectories_in(
    prompts: Sequence[str | None], completions: Sequence[str | None]
) -> tuple[Trajectory | None, ...] | None:
    """Parse completions that are conversations in JSON, (B,).

    A trajectory is None if the completion is not a conversation, or once the total length exceeds
    :data:`MOST_CHARACTERS`. Return None if no completion has more than one message or a tool call.
    """
    found: list[Trajectory | None] = []
    left = MOST_CHARACTERS
    for prompt, completion in zip(prompts, completions, strict=True):
        left -= len(prompt or "") + len(completion or "")
        turns = turns_in(completion) if left >= 0 else None
        found.append(None if turns is None else Trajectory(prompt=turns_in(prompt) or (), turns=turns))
    several = any(one is not None and (len(one.turns) > 1 or one.called) for one in found)
    return tuple(found) if several else None


def as_text(turns: Sequence[Turn]) -> str:
    """Format a conversation as text: speakers, calls with arguments, and results."""
    return "\n".join(line for turn in turns for line in lines_of(turn))


def lines_of(turn: Turn) -> list[str]:
    """Format a turn as lines: reasoning, text, calls."""
    who = tr("{role} {tool}").format(role=turn.role, tool=turn.tool) if turn.tool else turn.role
    lines = [tr("{role}, thinking: {text}").format(role=who, text=turn.reasoning)] if turn.reasoning else []
    if turn.text or not turn.calls:
        lines.append(f"{who}: {turn.text}")
    return lines + [f"{who} → {call.name}({call.arguments})" for call in turn.calls]


def _content(content: Any) -> str:
    """Return the text of a message's content. Parts that are not text are replaced by the name of their type."""
    if content is None or isinstance(content, str):
        return content or ""
    if not isinstance(content, list):
        raise TypeError("content is a text or a list of parts")
    parts = [part if isinstance(part, dict) else {"text": str(part)} for part in content]
    return "\n".join(str(part["text"]) if part.get("text") is not None else f"[{part.get('type')}]" for part in parts)


def _call(call: Mapping[str, Any]) -> ToolCall:
    inner = call.get("function")
    inner = inner if isinstance(inner, dict) else call
    arguments, number = inner.get("arguments"), call.get("id")
    written = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False, default=str)
    return ToolCall(
        name=str(inner["name"]),
        arguments="" if arguments is None else written,
        id=number if isinstance(number, str) else "",
    )
