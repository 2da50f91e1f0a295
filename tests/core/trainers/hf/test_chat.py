"""Prompts in a model's chat template, which is a program written by somebody else."""

from __future__ import annotations

import sys
from functools import partial
from itertools import count
from pathlib import Path

import pytest

from grpo_core.errors import GrpoError
from grpo_core.lm.problems import Prompt
from grpo_core.trainers.hf import chat as chat_module
from grpo_core.trainers.hf.chat import Chat
from grpo_core.trainers.hf.loading import libraries
from grpo_core.trainers.hf.template_limit import limited
from tests.core.trainers.hf.tiny import TEMPLATE

QUESTION = Prompt("What is 7 plus 5?", "12")
LOOPS = "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}"
NUMBERS = "{{ range(99999)|map('string')|map('length')|sum }}"


def chat(folder: Path, template: str) -> Chat:
    transformers, _ = libraries()
    tokenizer = transformers.AutoTokenizer.from_pretrained(str(folder), local_files_only=True)
    tokenizer.chat_template = template
    return Chat(tokenizer, (0, 1), 256)


@pytest.fixture
def ticking(monkeypatch: pytest.MonkeyPatch) -> None:
    """A clock that advances by one second at each reading, so that a busy machine does not affect the result."""
    ticks = count()
    monkeypatch.setattr(chat_module, "limited", partial(limited, 100_000.0, lambda: float(next(ticks))))


@pytest.mark.parametrize("template", [LOOPS, NUMBERS, f"{{% macro m() %}}{LOOPS}{{% endmacro %}}{{{{ m() }}}}"])
@pytest.mark.usefixtures("ticking")
def test_a_template_that_does_not_end_is_refused(template: str, folders: dict[str, Path]) -> None:
    before = sys.gettrace()
    with pytest.raises(GrpoError, match="not be filled in within 2 seconds"):
        chat(folders["llama"], template).encoded([QUESTION])
    assert sys.gettrace() is before


def test_a_template_that_makes_a_book_of_a_prompt_is_refused(folders: dict[str, Path]) -> None:
    with pytest.raises(GrpoError, match=r"turns a prompt into 2,000,000 characters; at most 1,000,000"):
        chat(folders["llama"], "{{ 'x' * 2000000 }}").encoded([QUESTION])


def test_what_a_template_itself_refuses_is_passed_on(folders: dict[str, Path]) -> None:
    with pytest.raises(GrpoError, match="no user may speak"):
        chat(folders["llama"], "{{ raise_exception('no user may speak') }}").encoded([QUESTION])


def test_a_template_that_works_is_filled_in_with_time_to_spare(folders: dict[str, Path]) -> None:
    (row,) = chat(folders["llama"], TEMPLATE).encoded([QUESTION])
    assert (row >= 0).sum() > len(QUESTION.text)
