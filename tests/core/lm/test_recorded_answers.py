"""What the shipped model answers before any training: recorded once, and what the model itself answers here."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from grpo_core.config import language_settings
from grpo_core.lm import recorded_answers as recorded
from grpo_core.lm.origin import origin
from grpo_core.shipped import CHECKPOINT, resource
from tools.make_answers import answered

PROMPTS = origin(language_settings()).watched


@pytest.fixture(autouse=True)
def _read_anew() -> Iterator[None]:
    recorded._known.cache_clear()
    yield
    recorded._known.cache_clear()


def test_the_recorded_answers_are_those_of_the_shipped_weights() -> None:
    assert dict(zip(PROMPTS, recorded.recorded_answers(language_settings(), PROMPTS), strict=True)) == answered()


def test_an_answer_is_cut_off_where_the_models_is() -> None:
    short = language_settings().replace({"task.max_tokens": 3})
    assert {len(answer or "") for answer in recorded.recorded_answers(short, PROMPTS)} == {2, 3}


@pytest.mark.parametrize(
    ("changes", "prompts"),
    [({"model.checkpoint": "untrained"}, PROMPTS), ({}, ("what is new?", "1+1"))],
    ids=["other weights", "other prompts"],
)
def test_nothing_is_claimed_of_other_weights_and_other_prompts(
    changes: dict[str, str], prompts: tuple[str, ...]
) -> None:
    settings = language_settings().replace(changes)
    assert recorded.recorded_answers(settings, prompts) == (None,) * len(prompts)


@pytest.mark.parametrize("content", ["", "{}", '{"sha256": "of other weights", "answers": {"9-1=": "7⏎"}}', "[]"])
def test_a_file_of_other_weights_or_a_broken_one_says_nothing(
    content: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "answers.json").write_text(content, encoding="utf-8")
    where = {recorded.ANSWERS: tmp_path / "answers.json", CHECKPOINT: resource(CHECKPOINT)}
    monkeypatch.setattr(recorded, "resource", where.__getitem__)
    assert recorded.recorded_answers(language_settings(), PROMPTS) == (None,) * len(PROMPTS)


def test_the_file_holds_the_digest_of_the_weights_beside_it() -> None:
    assert json.loads(resource(recorded.ANSWERS).read_text(encoding="utf-8"))["sha256"] == recorded.digest()
