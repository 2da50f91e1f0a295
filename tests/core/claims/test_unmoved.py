"""The table of settings and sentences: every row was looked at, and none is of a setting or sentence that is gone."""

from __future__ import annotations

import numpy as np
import pytest

from grpo_core.config import Settings, language_settings
from grpo_core.config.settings import flat
from grpo_core.testing.updates import trained
from tests.core.claims.test_update_claims import ON_CARDS
from tests.core.claims.unmoved import DRAWN, TABLE, accepted, read_by, rows, said, written


@pytest.mark.long
@pytest.mark.timeout(1800)
@np.errstate(all="ignore")
def test_no_sentence_stays_that_was_not_looked_at() -> None:
    new = {row: arrays for row, arrays in rows(*DRAWN).items() if row not in accepted()}
    assert not new, f"look at each, then accept it: python -m tests.core.claims.unmoved --accept: {new}"


def test_the_table_is_of_present_settings_and_sentences() -> None:
    paths = {*flat(Settings()), *flat(language_settings())}
    assert {path for path, _ in accepted()} <= paths and {kind for _, kind in accepted()} <= {*ON_CARDS}
    assert written(accepted()) == TABLE.read_text("utf-8") and len(accepted()) > 300


def test_the_arrays_that_a_sentence_speaks_of_are_those_that_its_check_reads() -> None:
    step = trained(Settings().replace({"task.landscape": "custom", "task.custom": (0.5,) * 10}))
    read = {claim.words(): read_by(claim, step) for claim in said(step)}
    assert read["All rewards are equal."] >= {"rewards", "group"}
    assert "logp" not in read["All rewards are equal."]
