"""How long an update takes is measured without making one, and can be given up."""

from __future__ import annotations

from pathlib import Path

import pytest

from grpo_core.errors import Cancelled
from grpo_core.hf.probe import Seconds
from tests.core.hf.test_policy import run, same


def test_the_parts_of_an_update_are_measured_and_the_run_stays_as_it_is(folders: dict[str, Path]) -> None:
    measured, undisturbed = run(folders["llama"]), run(folders["llama"])
    seconds = measured.measured()
    assert seconds.sampling > 0 and seconds.learning > 0
    assert "measured just now" in seconds.sentence and "CPU" in seconds.sentence
    assert same(next(measured), next(undisturbed))


def test_measuring_is_given_up_at_the_next_token(folders: dict[str, Path]) -> None:
    asked = [False]
    learner = run(folders["gpt2"], cancelled=lambda: asked[0])
    asked[0] = True
    with pytest.raises(Cancelled):
        learner.measured()


@pytest.mark.parametrize(
    ("sampling", "learning", "expected"),
    [
        (0.0312, 0.5, ("0.53", "0.031", "0.5")),
        (4.06, 9.91, ("14", "4.1", "9.9")),
        (122.4, 1318.0, ("1,440", "122", "1,318")),
    ],
)
def test_seconds_are_never_written_as_powers_of_ten(
    sampling: float, learning: float, expected: tuple[str, str, str]
) -> None:
    sentence = Seconds(sampling=sampling, learning=learning, device="cpu").sentence
    whole, sampled, learned = expected
    assert f"up to {whole} s here (CPU): {sampled} s of sampling and {learned} s of learning" in sentence
