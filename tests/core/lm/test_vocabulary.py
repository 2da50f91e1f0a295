"""Characters and tokens."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from grpo_core.errors import GrpoError
from grpo_core.lm.vocabulary import STOP, VOCABULARY, decode, encode, padded

TEXT = st.text(alphabet="".join(VOCABULARY[1:]), max_size=30)


@given(text=TEXT, after=st.lists(st.integers(0, len(VOCABULARY) - 1), max_size=4))
def test_any_known_text_comes_back_whatever_stands_behind_its_end(text: str, after: list[int]) -> None:
    assert decode([*encode(text), STOP, *after]) == text
    assert decode([*encode(text), -1, *after]) == text


@given(text=st.text(max_size=20))
def test_a_text_is_encoded_or_refused_with_the_first_character_that_is_not_known(text: str) -> None:
    foreign = [letter for letter in text if letter not in VOCABULARY[1:]]
    if not foreign:
        assert len(encode(text)) == len(text)
        return
    with pytest.raises(GrpoError) as refused:
        encode(text)
    assert f"“{foreign[0]}” (character {text.index(foreign[0]) + 1} of" in str(refused.value)


def test_the_sign_that_stands_for_the_end_cannot_be_typed() -> None:
    with pytest.raises(GrpoError, match="does not know “⏎”"):
        encode(VOCABULARY[STOP])


@given(rows=st.lists(st.lists(st.integers(0, 19), max_size=6), min_size=1, max_size=5), left=st.booleans())
def test_a_table_holds_its_rows_in_order_on_the_side_that_was_asked_for(rows: list[list[int]], left: bool) -> None:
    table = padded(rows, 6, left=left)
    assert table.shape == (len(rows), 6)
    for row, held in zip(rows, table, strict=True):
        assert held[held >= 0].tolist() == row
        beside = held[: 6 - len(row)] if left else held[len(row) :]
        assert np.all(beside == -1)
