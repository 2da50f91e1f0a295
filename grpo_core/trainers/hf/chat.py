"""Conversion of prompts and completions between text and a model's tokens, with a limited chat template.

A template is a program that comes with the folder. transformers runs it in jinja2's sandbox, which keeps it away from
files and Python's internals, but does not prevent nested loops that count to ten billion.
"""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

from grpo_core.config import LanguageTask
from grpo_core.errors import GrpoError, SettingsError, shortened
from grpo_core.lm.problems import Prompt
from grpo_core.lm.vocabulary import padded
from grpo_core.text import plural, tr

SWITCHES = ("enable_thinking", "thinking")
"""Names of the variable with which chat templates switch their thinking mode: Qwen's and DeepSeek's."""
_SWITCH = re.compile(rf"\{{%[^%]*\b(?:{'|'.join(SWITCHES)})\b")
NO_SYSTEM = tr("the model has no chat template and so no place for a system prompt; put it into your prompts")
PROMPT = "The capital of France is"
"""A prompt in words, since a tokenizer can multiply letters."""
SECONDS = 2.0
"""Time limit in seconds for rendering one prompt. Typical templates take a thousandth of that."""
LONGEST = 1_000_000
"""Maximum number of characters of a rendered prompt."""
_TEMPLATE = "<template>"
"""File name that jinja2 assigns to the code of a template compiled from a string."""


class TemplateTimeError(Exception):
    """Raised if a template takes too long."""


@contextmanager
def limited(seconds: float = SECONDS, clock: Callable[[], float] = time.monotonic) -> Iterator[None]:
    """Context manager that interrupts a template's code, and any Python function it calls, after ``seconds``, in this
    thread.

    The time is checked before each line of the template's code and before each function call. A single operation of the
    interpreter, such as multiplying large numbers, is therefore not interrupted.

    Raises:
        TemplateTimeError: the code took longer.
    """
    due = clock() + seconds

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        if clock() >= due:
            raise TemplateTimeError
        return trace if frame.f_code.co_filename == _TEMPLATE else None

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        yield
    finally:
        sys.settrace(before)


class Chat:
    """A tokenizer with its chat template. Without a template, prompts are encoded unchanged.

    Args:
        tokenizer: the tokenizer of transformers.
        ends: tokens that end a completion.
        longest: maximum number of tokens of a prompt; None if there is no limit.
        task: settings with the system prompt and the thinking mode.

    Raises:
        SettingsError: the template has no switch for the thinking mode, or there is no template for a system prompt.
    """

    def __init__(self, tokenizer: Any, ends: tuple[int, ...], longest: int | None, task: LanguageTask) -> None:
        self._tokenizer, self._longest, self.ends, self._system = tokenizer, longest, ends, task.system
        thinks = {"default": None, "on": True, "off": False}[task.thinking]
        self._switch = {} if thinks is None else dict.fromkeys(SWITCHES, thinks)
        if self._switch and not _SWITCH.search(str(getattr(tokenizer, "chat_template", None) or "")):
            no_switch = tr("the model's chat template has no switch for a thinking mode; choose the default")
            raise SettingsError("task.thinking", task.thinking, no_switch)
        if task.system and not self.templated:
            raise SettingsError("task.system", task.system, NO_SYSTEM)

    @property
    def templated(self) -> bool:
        return bool(getattr(self._tokenizer, "chat_template", None))

    def encoded(self, prompts: Sequence[Prompt]) -> np.ndarray:
        """Encode prompts as tokens, (P, T_prompt), −1 in padding on the right.

        Raises:
            GrpoError: a prompt is empty or longer than the model's context, or the template cannot be rendered.
        """
        rows = [self._prompt(prompt) for prompt in prompts]
        return padded(rows, max(map(len, rows)))

    def text(self, tokens: np.ndarray) -> str:
        """Return the text of a completion's tokens (L,), without the end-of-sequence token."""
        kept = [int(token) for token in tokens if int(token) not in self.ends]
        return str(self._tokenizer.decode(kept, skip_special_tokens=False, clean_up_tokenization_spaces=False))

    def completion(self, text: str) -> np.ndarray:
        """Encode a typed completion, including the end-of-sequence token, (L,)."""
        own = self._tokenizer(text, add_special_tokens=False)["input_ids"]
        return np.array([*own, self.ends[-1]], dtype=np.int32)

    def _prompt(self, prompt: Prompt) -> list[int]:
        text = prompt.text
        try:
            if self.templated:
                tokens = self._tokenizer(self._filled_in(prompt), add_special_tokens=False)["input_ids"]
            elif prompt.system:
                raise GrpoError(f"“{shortened(text, 60)}”: {NO_SYSTEM}.")
            else:
                tokens = self._tokenizer(text)["input_ids"]
        except TemplateTimeError:
            raise GrpoError(
                tr(
                    "The model's chat template could not be filled in within {seconds:g} seconds; a working template "
                    "takes a few milliseconds. Use another version of the model."
                ).format(seconds=SECONDS)
            ) from None
        except (GrpoError, MemoryError):
            raise
        except Exception as error:  # a template is a sandboxed program from the folder and can raise anything
            raise GrpoError(
                tr("The model's chat template cannot be filled in: {error}.").format(error=shortened(error))
            ) from None
        if not tokens or (self._longest is not None and len(tokens) >= self._longest):
            raise GrpoError(
                plural(
                    "The prompt “{text}” has {count} token; the model has room for 1 to {longest}.",
                    "The prompt “{text}” has {count} tokens; the model has room for 1 to {longest}.",
                    len(tokens),
                ).format(text=shortened(text, 60), count=len(tokens), longest=self._longest)
            )
        return [int(token) for token in tokens]

    def _filled_in(self, prompt: Prompt) -> str:
        system = self._system or prompt.system
        messages = [{"role": "system", "content": system}] * bool(system) + [{"role": "user", "content": prompt.text}]
        how = {"add_generation_prompt": True, "tokenize": False, **self._switch}
        with limited():
            whole = self._tokenizer.apply_chat_template(messages, **how)
        if len(whole) > LONGEST:
            raise GrpoError(
                plural(
                    "The model's chat template turns a prompt into {count:,} character; at most {longest:,} can be "
                    "read.",
                    "The model's chat template turns a prompt into {count:,} characters; at most {longest:,} can be "
                    "read.",
                    len(whole),
                ).format(count=len(whole), longest=LONGEST)
            )
        return str(whole)


def encode_a_prompt(folder: Path) -> None:
    """Encode a prompt with the tokenizer and chat template in ``folder``. Whatever else is wrong is said when the model
    is loaded, perhaps by another kind of tokenizer.

    Raises:
        MemoryError: there is not enough memory.
    """
    try:
        from transformers import PreTrainedTokenizerFast  # without torch, unlike AutoTokenizer

        tokenizer = PreTrainedTokenizerFast.from_pretrained(str(folder), local_files_only=True)
        Chat(tokenizer, (), None, LanguageTask()).encoded([Prompt(text=PROMPT, answer="")])
    except MemoryError:
        raise
    except Exception:
        return
