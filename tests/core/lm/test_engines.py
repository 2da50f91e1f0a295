"""The engine that computes a run: NumPy if it begins on the CPU, torch if torch began it. Both match the stated
figures.
"""

from __future__ import annotations

from itertools import islice

import numpy as np
import pytest

from grpo_core.config import Settings, language_settings
from grpo_core.learners import learner
from grpo_core.lm import engines
from grpo_core.lm.answers import Answering
from grpo_core.lm.engines import ENGINES, chosen_engine
from grpo_core.lm.interface import NUMPY, TORCH, engine_of
from grpo_core.lm.learner import LanguageLearner
from grpo_core.progress import unpolled
from grpo_core.questions import Replay, Replayed
from grpo_core.record import Step
from tests.core.lm.test_learner import same, small


def made(engine: str, settings: Settings, count: int) -> list[Step]:
    """Return the first updates as this engine computes them."""
    return list(islice(LanguageLearner(settings, make_policy=ENGINES[engine]), count))


@pytest.mark.parametrize(
    ("device", "recorded_by", "torch_there", "chosen"),
    [
        ("cpu", None, True, NUMPY),
        ("cpu", NUMPY, True, NUMPY),
        ("cpu", TORCH, True, TORCH),
        ("cpu", TORCH, False, NUMPY),
        ("cuda", None, True, TORCH),
        ("mps", NUMPY, True, TORCH),
        ("cuda", None, False, NUMPY),  # which says that only the CPU is there
    ],
)
def test_numpy_computes_on_the_cpu_and_torch_elsewhere_and_what_it_has_begun(
    device: str, recorded_by: str | None, torch_there: bool, chosen: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engines, "torch_is_there", lambda: torch_there)
    recorded = None if recorded_by is None else made(recorded_by, small(), 1)[0]
    assert chosen_engine(small(model__device=device), recorded) == chosen


@pytest.mark.parametrize("engine", ENGINES)
def test_whoever_began_a_run_goes_on_with_it_bit_for_bit(engine: str) -> None:
    settings = small(learner__mu=2)
    whole = made(engine, settings, 5)
    for stop in (2, 4):  # without a snapshot, and after one
        going = learner(settings, resume=whole[stop - 1], earlier=lambda number: whole[number - 1])
        assert isinstance(going, LanguageLearner) and (going.recorded_by, going.drift) == (engine, 0.0)
        assert same(next(going), whole[stop])


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("number", [1, 2])
def test_an_update_is_computed_again_by_the_engine_that_made_it(engine: str, number: int) -> None:
    whole = made(engine, small(), number)
    step = whole[-1]
    again = Answering()(Replay(step=number, settings=step.settings), step, whole[:-1], unpolled)
    assert isinstance(again, Replayed)
    assert all(np.array_equal(value, getattr(step, name)) for name, value in again.arrays.items())


LEARNED = {
    1: (0.28, 0.30, 0.50, 0.54),
    21: (0.89, 0.93, 0.78, 0.82),
    41: (0.96, 1.0, 0.87, 0.93),
    141: (0.98, 1.0, 0.90, 0.98),
}
"""Update -> the minimum and maximum share of correct greedy answers, and of correct sampled ones, before it: the
table of the model card (``resources/checkpoints/README.md``); “nine of ten” within twenty updates is from README.
"""


@pytest.mark.long
@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("engine", ENGINES)
def test_the_figures_of_the_model_card_hold_on_both_engines(engine: str, seed: int) -> None:
    whole = made(engine, language_settings().replace({"seed": seed}), 141)
    assert engine_of(whole[-1]) == engine
    for number, (least, most, least_sampled, most_sampled) in LEARNED.items():
        told = whole[number - 1].measurements
        assert least <= told["accuracy_greedy"] <= most, number
        assert least_sampled <= told["accuracy_sampled"] <= most_sampled, number
