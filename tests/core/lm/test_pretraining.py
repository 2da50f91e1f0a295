"""The checkpoint's data and recipe; resuming after an interruption, and files that cannot be resumed from."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.nn import functional as F  # noqa: N812 - as everywhere

from grpo_core.commands.cli import main
from grpo_core.errors import Cancelled, GrpoError
from grpo_core.lm import problems
from grpo_core.lm.model import Transformer, initialized
from grpo_core.lm.pretraining import RESTATED, RIGHT, Recipe, batch, example, pretrained, schedule
from grpo_core.lm.vocabulary import STOP, decode
from grpo_core.progress import unpolled
from tests.core.lm.models import TINY
from tests.polls import cancelled_at

RECIPE = Recipe(size=TINY, steps=5, batch=6, threads=1)


def made(recipe: Recipe, partial: Path, *, stop: int | None = None) -> Transformer:
    """Return the model; interrupted before step ``stop`` of this call, counted from 0."""
    poll = unpolled if stop is None else cancelled_at(stop)
    return pretrained(recipe, partial, poll=poll, progress=lambda done, loss: None)


def same(one: Transformer, other: Transformer) -> bool:
    return all(torch.equal(a, b) for a, b in zip(one.parameters(), other.parameters(), strict=True))


@pytest.mark.parametrize("stops", [[0], [1, 1, 1], [4], [0, 0, 2]])
def test_however_often_it_is_interrupted_the_same_bits_come_out(tmp_path: Path, stops: list[int]) -> None:
    whole, partial = made(RECIPE, tmp_path / "other"), tmp_path / "half"
    for stop, done in zip(stops, np.cumsum(stops), strict=True):
        with pytest.raises(Cancelled, match=rf"after {done} steps.*the same command continues from there"):
            made(RECIPE, partial, stop=stop)
    assert [path.name for path in tmp_path.iterdir()] == ["half"], "nothing half-written is left beside it"
    assert same(made(RECIPE, partial), whole)
    assert not partial.exists()


def test_another_seed_makes_another_model(tmp_path: Path) -> None:
    other = Recipe(size=TINY, steps=5, batch=6, threads=1, seed=2)
    assert not same(made(RECIPE, tmp_path / "one"), made(other, tmp_path / "other"))


@pytest.mark.parametrize("content", [b"", b"no tensors", bytes(range(256)) * 8])
def test_a_damaged_half_is_told_and_left_where_it_is(tmp_path: Path, content: bytes) -> None:
    partial = tmp_path / "half"
    partial.write_bytes(content)
    with pytest.raises(GrpoError, match=r"half cannot be read .*; delete it to start again"):
        made(RECIPE, partial)
    assert partial.read_bytes() == content


def test_a_half_that_was_cut_short_is_told(tmp_path: Path) -> None:
    partial = tmp_path / "half"
    with pytest.raises(Cancelled):
        made(RECIPE, partial, stop=2)
    partial.write_bytes(partial.read_bytes()[:-100])
    with pytest.raises(GrpoError, match="half cannot be read"):
        made(RECIPE, partial)


@pytest.mark.parametrize("changes", [{"seed": 3}, {"steps": 7}, {"batch": 7}, {"learning_rate": 1e-3}, {"threads": 2}])
def test_a_half_of_another_recipe_is_refused(tmp_path: Path, changes: dict[str, float]) -> None:
    partial = tmp_path / "half"
    with pytest.raises(Cancelled):
        made(RECIPE, partial, stop=1)
    kept = partial.read_bytes()
    with pytest.raises(GrpoError, match="another recipe"):
        made(Recipe(**{**vars(RECIPE), **changes}), partial)
    assert partial.read_bytes() == kept


def test_progress_tells_the_loss_of_the_data_of_each_step(tmp_path: Path) -> None:
    told: list[tuple[int, float]] = []
    pretrained(RECIPE, tmp_path / "half", poll=unpolled, progress=lambda done, loss: told.append((done, loss)))
    assert [done for done, _ in told] == [1, 2, 3, 4, 5]
    tokens, counted = batch(RECIPE, 0)
    with torch.no_grad():
        logp = initialized(Transformer(TINY), RECIPE.seed)(tokens[:, :-1]).log_softmax(dim=-1)
    first = F.nll_loss(logp[counted], tokens[:, 1:][counted])
    assert told[0][1] == pytest.approx(float(first), rel=1e-5)


def test_a_model_learns_from_it(tmp_path: Path) -> None:
    losses: list[float] = []
    recipe = Recipe(size=TINY, steps=60, batch=16, learning_rate=0.03, threads=1)
    pretrained(recipe, tmp_path / "half", poll=unpolled, progress=lambda done, loss: losses.append(loss))
    assert np.mean(losses[-5:]) < np.mean(losses[:5]) - 0.5


def test_the_rate_rises_for_a_hundred_steps_and_falls_to_a_hundredth() -> None:
    rates = [schedule(step, 2500) for step in range(2500)]
    top = int(np.argmax(rates))
    assert rates[0] == pytest.approx(0.01) and top == 99
    assert rates[top] > 0.99 and max(rates) <= 1
    assert (np.diff(rates[:100]) > 0).all() and (np.diff(rates[100:]) < 0).all()
    assert rates[-1] == pytest.approx(0.01, abs=1e-3)


def test_the_data_hold_both_habits_as_often_as_they_say_and_no_slip() -> None:
    numbers = np.random.default_rng(0)
    said = Counter[tuple[str, str]]()
    restated = 0
    for _ in range(3000):
        prompt, work = example(numbers)
        expression = prompt.rstrip("=")
        assert not problems.is_held_out(expression), "what is held out is held out here too"
        verdict = problems.verdict(prompt, work)
        restated += verdict.words.endswith(", restated")
        habit = problems.working(expression, left_to_right=True).rpartition("=")[2]
        differ = int(habit) != problems.answer(expression)
        kind = ("hard" if expression.count("+") + expression.count("-") == 2 else "sweet_spot") if differ else "easy"
        said[kind, verdict.words.removesuffix(", restated")] += 1
    assert {words for _, words in said} == {"right", "went left to right"}
    for kind in RIGHT:
        right, wrong = said[kind, "right"], said[kind, "went left to right"]
        assert right / (right + wrong) == pytest.approx(RIGHT[kind], abs=0.05), kind
    assert restated / 3000 == pytest.approx(RESTATED, abs=0.015)


def test_the_data_of_a_step_follow_from_the_seed_and_the_step() -> None:
    one, again, other = batch(RECIPE, 3), batch(RECIPE, 3), batch(RECIPE, 4)
    assert torch.equal(one[0], again[0]) and torch.equal(one[1], again[1])
    assert one[0].shape != other[0].shape or not torch.equal(one[0], other[0])


def test_what_counts_ends_with_the_end_sign_and_padding_never_does() -> None:
    tokens, counted = batch(RECIPE, 1)
    for row, real in zip(tokens, counted, strict=True):
        targets = row[1:][real]
        assert int(targets[-1]) == STOP and not (targets[:-1] == STOP).any()
        whole = decode([*row.tolist(), STOP])
        prompt, _, work = whole.partition("=")
        assert decode(targets.tolist()) == work
        assert problems.verdict(f"{prompt}=", work).words.startswith(("right", "went left"))


def test_the_command_makes_a_checkpoint_that_a_run_can_start_from(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    size = ["model.width=16", "model.heads=2", "model.context=48"]
    chosen = [word for one in size for word in ("--set", one)]
    out, run = tmp_path / "tiny.safetensors", tmp_path / "run.grpo"
    assert main(["pretrain", "--out", str(out), "--steps", "2", "--batch", "4", "--threads", "1", *chosen]) == 0
    assert main(["pretrain", "--out", str(out), "--steps", "2", *chosen]) == 2
    assert "already exists" in capsys.readouterr().err
    train = ["train", "--language", "--steps", "2", "--out", str(run), *chosen]
    assert main([*train, "--set", f"model.checkpoint={out}", "--set", "task.held_out=4"]) == 0
    assert main(["inspect", str(run)]) == 0
    assert "Right in the batch" in capsys.readouterr().out
