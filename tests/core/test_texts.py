"""The question is extracted from a prompt without the chat template around it."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from grpo_core.config import Settings, folder_settings
from grpo_core.learners import learner
from grpo_core.record import Origin
from grpo_core.texts import answer_tokens, prompt_text, question_text, tokens_text

TEMPLATES = {
    "ChatML": [
        "<|im_start|>",
        "system\n",
        "You help.",
        "<|im_end|>",
        "\n",
        "<|im_start|>",
        "user\n",
        "Why <b>?",
        "<|im_end|>",
        "\n",
        "<|im_start|>",
        "assistant\n",
    ],
    "Llama": [
        "<|begin_of_text|>",
        "<|start_header_id|>",
        "user",
        "<|end_header_id|>",
        "\n\n",
        "Why <b>?",
        "<|eot_id|>",
        "<|start_header_id|>",
        "assistant",
        "<|end_header_id|>",
        "\n\n",
    ],
    "Mistral": ["<s>", "[INST]", " ", "Why <b>?", " ", "[/INST]"],
    "Gemma": ["<bos>", "<start_of_turn>", "user\n", "Why <b>?", "<end_of_turn>", "\n", "<start_of_turn>", "model\n"],
    "none": ["Why ", "<b>?"],
}


@pytest.mark.parametrize("name", TEMPLATES)
def test_a_question_is_read_out_of_its_template(name: str) -> None:
    pieces = TEMPLATES[name]
    step = next(learner(Settings()))
    tokens = np.arange(len(pieces))[None]
    asked = dataclasses.replace(step, prompt_tokens=np.concatenate([tokens, np.full((1, 2), -1)], axis=1))
    origin = Origin(settings=folder_settings("/some/model"), vocabulary=tuple(pieces), prompts=())
    assert question_text(asked, 0, origin) == "Why <b>?"
    assert prompt_text(asked, 0, origin) == "".join(pieces)


def test_the_marks_that_end_an_answer_are_no_part_of_it() -> None:
    origin = Origin(settings=folder_settings("/some/model"), vocabulary=("12", "<|im_end|>", "."), prompts=())
    assert tokens_text(answer_tokens(np.array([0, 2, 1, -1]), origin), origin) == "12."
