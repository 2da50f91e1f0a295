"""Text of prompts and completions, for every kind of policy, and of what is assumed about an update."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import numpy as np

from grpo_core import recompute
from grpo_core.record import Origin, Step
from grpo_core.text import tr


def prompt_text(step: Step, group: int, origin: Origin) -> str:
    known = step.prompt_texts[group] if step.prompt_texts is not None and group < len(step.prompt_texts) else None
    if known is not None:
        return known
    if step.prompt_tokens is not None and group < len(step.prompt_tokens):
        return tokens_text(step.prompt_tokens[group], origin)
    return origin.prompts[group] if group < len(origin.prompts) else tr("prompt {number}").format(number=group + 1)


def question_text(step: Step, group: int, origin: Origin) -> str:
    """Return the question of group ``group`` without the chat template: for a model from a folder the last message
    before the answer, otherwise :func:`prompt_text`.

    Template markers are separate tokens, such as ``<|im_start|>`` or ``[INST]``; roles are alone on a line.
    """
    if not origin.settings.model.folder or step.prompt_tokens is None or group >= len(step.prompt_tokens):
        return prompt_text(step, group, origin)
    return question_in(step.prompt_tokens[group].tolist(), origin)


def question_in(prompt: Sequence[int], origin: Origin) -> str:
    """Extract the question from the tokens of a prompt, as in :func:`question_text`."""
    whole = tokens_text(prompt, origin)
    if not origin.settings.model.folder:
        return whole
    messages, words = [""], origin.vocabulary
    for token in prompt:
        text = words[token] if 0 <= token < len(words) else ""
        if _MARK.fullmatch(text):
            messages.append("")
        else:
            messages[-1] += text
    bare = (_ROLE.sub("", _assembled(message), count=1).strip() for message in messages)
    return next((message for message in reversed([*bare]) if message), whole)


def completion_text(step: Step, row: int, origin: Origin) -> str:
    """Return the text of completion ``row``, including its end-of-sequence token if it is assembled from tokens."""
    known = None if step.completion_texts is None else step.completion_texts[row]
    if known is not None:
        return known
    return tokens_text(step.tokens[row][step.there[row]], origin)


def answer_tokens(tokens: np.ndarray, origin: Origin) -> np.ndarray:
    """Return the tokens (L,) of a completion of a model from a folder, without the template's markers at its end."""
    kept = [int(token) for token in tokens if token >= 0]
    while kept and kept[-1] < len(origin.vocabulary) and _MARK.fullmatch(origin.vocabulary[kept[-1]]):
        kept.pop()
    return np.array(kept, dtype=np.int64)


def tokens_text(tokens: Iterable[int] | np.ndarray, origin: Origin) -> str:
    """Return the text of ``tokens``. Padding (−1) is left out, and an unknown token becomes a question mark."""
    words = origin.vocabulary
    return _assembled("".join(words[t] if t < len(words) else "?" for t in map(int, tokens) if t >= 0))


def _assembled(text: str) -> str:
    r"""Return ``text`` with the characters whose bytes are in several tokens, written as escapes such as ``\xf0``."""
    return _BYTES.sub(
        lambda found: bytes.fromhex(found[0].replace("\\x", "")).decode("utf-8", "backslashreplace"), text
    )


_BYTES = re.compile(r"(?:\\x[89a-f][0-9a-f])+")


_MARK = re.compile(r"<[|/]?[A-Za-z_][\w .|-]*>|\[/?[A-Z_]+\]|<｜.+｜>")
"""Pattern of a token with which a chat template delimits messages."""
_ROLE = re.compile(r"\s*(system|user|assistant|model)\s*(\n|$)")
"""Pattern of a speaker's role, at the start of a message or alone on a line."""


ONE_ALONE = tr("Log-probabilities are recorded only for the sampler or only for the trainer, and are used for both.")


def assumption(step: Step) -> str:
    """Return sentences on what is assumed about an update because its source does not record it: the settings of
    the loss, and log-probabilities that the trainer or the sampler did not provide. Empty if nothing is assumed.
    """
    if not step.settings.is_recorded:
        return ""
    if step.settings.recorded.names_loss:
        weighs = step.settings.objective.importance_cap is not None and step.sampling_logp is None
        return ONE_ALONE if weighs else ""
    said = [
        tr(
            "No settings of a loss are recorded: advantage, mask and log-probabilities are as recorded, but ratio, "
            "weight, push and loss are those of GRPO with one pass and no KL. “What if” computes another loss."
        )
        if step.advantage is not None
        else tr(
            "Neither advantages nor settings of a loss are recorded: mask and log-probabilities are as recorded, but "
            "advantage, weight, push and loss are those of GRPO with one pass and no KL. “What if” computes another "
            "loss."
        )
    ]
    if step.sampling_logp is None:
        said.append(ONE_ALONE)
    elif not np.array_equal(recompute.scored_by_sampler(step), recompute.used(step, 0)):
        said.append(
            tr("If only the sampler's or only the trainer's log-probabilities are recorded, they are used for both.")
        )
    return " ".join(said)
