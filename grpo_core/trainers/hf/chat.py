"""Conversion of prompts and completions between text and a model's tokens."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from grpo_core.errors import GrpoError, shortened
from grpo_core.lm.problems import Prompt
from grpo_core.lm.vocabulary import padded
from grpo_core.text import plural, tr
from grpo_core.trainers.hf.template_limit import LONGEST, SECONDS, TemplateTimeError, limited

PROMPT = "The capital of France is"
"""A prompt in words, since a tokenizer can multiply letters."""


class Chat:
    """A tokenizer with its chat template. Without a template, prompts are encoded unchanged.

    Attributes:
        ends: tokens that end a completion.
    """

    def __init__(self, tokenizer: Any, ends: tuple[int, ...], longest: int | None) -> None:
        self._tokenizer = tokenizer
        self._longest = longest
        self.ends = ends

    @property
    def templated(self) -> bool:
        """Whether prompts are wrapped in a chat template."""
        return bool(getattr(self._tokenizer, "chat_template", None))

    def encoded(self, prompts: Sequence[Prompt]) -> np.ndarray:
        """Encode prompts as tokens, (P, T_prompt), −1 in padding on the right.

        Raises:
            GrpoError: a prompt is empty or longer than the model's context, or the template cannot be rendered.
        """
        rows = [self._prompt(prompt.text) for prompt in prompts]
        return padded(rows, max(map(len, rows)))

    def text(self, tokens: np.ndarray) -> str:
        """Return the text of a completion's tokens (L,), without the end-of-sequence token."""
        kept = [int(token) for token in tokens if int(token) not in self.ends]
        return str(self._tokenizer.decode(kept, skip_special_tokens=False, clean_up_tokenization_spaces=False))

    def completion(self, text: str) -> np.ndarray:
        """Encode a typed completion, including the end-of-sequence token, (L,)."""
        own = self._tokenizer(text, add_special_tokens=False)["input_ids"]
        return np.array([*own, self.ends[-1]], dtype=np.int32)

    def _prompt(self, text: str) -> list[int]:
        try:
            if self.templated:
                tokens = self._tokenizer(self._filled_in(text), add_special_tokens=False)["input_ids"]
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

    def _filled_in(self, text: str) -> str:
        """Render the prompt with the model's template."""
        messages = [{"role": "user", "content": text}]
        with limited():
            whole = self._tokenizer.apply_chat_template(messages, add_generation_prompt=True, tokenize=False)
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
        Chat(tokenizer, (), None).encoded([Prompt(text=PROMPT, answer="")])
    except MemoryError:
        raise
    except Exception:
        return
