"""Cards and explanations of random updates, read by the second check."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np
import pytest

from grpo_core.errors import GrpoError
from grpo_core.explain import Quantity, explain
from grpo_core.reasons import reasons
from grpo_core.record import Step
from tests.core.claims.drawn_updates import drawn_updates
from tests.core.claims.second_check import SAID, false_words


def texts(step: Step, passed: int) -> Iterator[str]:
    """Yield the sentences of an update's cards, and the notes on the clip of its first token."""
    for reason in reasons(step, passed).values():
        yield f"{reason.chip}: {reason.sentence}"
        yield reason.sentence
    row, token = (int(place) for place in np.argwhere(step.mask)[0])
    for name in ("surrogate", "clipped", "ratio"):
        yield explain(step, Quantity(name, passed=passed, row=row, token=token)).note


@pytest.mark.parametrize("count", [3, pytest.param(1500, marks=[pytest.mark.long, pytest.mark.timeout(3600)])])
@np.errstate(all="ignore")
def test_no_sentence_of_a_card_is_contradicted_by_the_arrays(count: int) -> None:
    chance, seen, wrong = np.random.default_rng(17), Counter[str](), []
    for number in range(count):
        for step in drawn_updates(chance, number):
            for passed in {0, step.passes - 1}:
                try:
                    said = [*texts(step, passed)]
                except GrpoError:  # a source that lacks what its own settings ask for
                    continue
                seen["texts"] += len(said)
                wrong += [(words, text) for text in said for words in false_words(text, step, passed)]
    assert not wrong, (len(wrong), seen["texts"], Counter(words for words, _ in wrong).most_common(8), wrong[:4])
    assert seen["texts"] > 40 * count and len(SAID) > 10
