"""The turns of the toy agent's completions (``grpo_core.lm.calculator``), read from their tokens."""

from __future__ import annotations

from typing import Any

import numpy as np

from grpo_core.config import LanguageTask
from grpo_core.foreign.trajectory import ToolCall, Trajectory, Turn
from grpo_core.lm.calculator import CLOSE, NAME, UNKNOWN, call_in, exchanges
from grpo_core.lm.vocabulary import STOP, decode
from grpo_core.record import Step


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
        prompt: the prompt's text.
        tokens: (L,), tokens of the completion, including the end-of-sequence token.
        mask: (L,) boolean, tokens that the loss counts.
        task: the task for which the completion was sampled.
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
