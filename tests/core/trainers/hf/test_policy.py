"""A model from a folder as a policy: its numbers match a plain forward pass, its loss is the shared one, and an update
is cancelled between two layers of a pass.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from grpo_core import recompute
from grpo_core.errors import Cancelled, GrpoError, SettingsError
from grpo_core.learners import leading_to, learner, origin
from grpo_core.lm.interface import SamplingRequest
from grpo_core.lm.problems import Prompt
from grpo_core.metrics import metrics
from grpo_core.objective import evaluate
from grpo_core.progress import unpolled
from grpo_core.record import ARRAYS, Step
from grpo_core.runs.run_file import RunReader, RunWriter
from grpo_core.texts import completion_text, prompt_text
from grpo_core.trainers.hf.folder import ignored
from grpo_core.trainers.hf.folder_policy import FolderPolicy
from grpo_core.trainers.hf.learner import FolderLearner
from grpo_core.trainers.hf.scoring import Ways
from tests.core.trainers.hf.tiny import KINDS, small


def run(folder: Path, *, history: Any = (), poll: Callable[[], None] = unpolled, **changes: Any) -> FolderLearner:
    return FolderLearner(small(folder, **changes), history=history, poll=poll)


def same(one: Step, other: Step) -> bool:
    pairs = [(getattr(one, name), getattr(other, name)) for name in ARRAYS]
    return all((a is None and b is None) or np.array_equal(a, b) for a, b in pairs)


def distribution(model: Any, step: Step, row: int, temperature: float = 1.0) -> torch.Tensor:
    """Return log-probabilities (L, V) at every place of a completion, from one forward pass of transformers."""
    assert step.prompt_tokens is not None
    prompt = [int(t) for t in step.prompt_tokens[step.group[row]] if t >= 0]
    whole = torch.tensor([[*prompt, *step.tokens[row][step.mask[row]].tolist()]])
    return torch.log_softmax(model(input_ids=whole).logits.float() / temperature, dim=-1)[0, len(prompt) - 1 : -1]


def plain_logp(model: Any, step: Step, temperature: float = 1.0) -> torch.Tensor:
    """Return (B, T); 0 in padding."""
    logp = torch.zeros(step.tokens.shape)
    for row, (own, real) in enumerate(zip(step.tokens, step.mask, strict=True)):
        chosen = torch.from_numpy(own[real]).long()[:, None]
        logp[row, : len(chosen)] = distribution(model, step, row, temperature).gather(-1, chosen)[:, 0]
    return logp


@pytest.mark.parametrize("kind", KINDS)
def test_log_probabilities_are_those_of_a_plain_forward_pass(kind: str, folders: dict[str, Path]) -> None:
    going = run(folders[kind], learner__temperature=0.7, optimizer__learning_rate=0.0, model__watch_reference=True)
    step = next(going)
    assert going.policy.ways == Ways(padding=True, sharing=True, tree=sys.maxsize)
    with torch.no_grad():
        expected = plain_logp(going.policy.model, step, 0.7).numpy()
    assert step.sampling_logp is not None and step.ref_logp is not None
    for found in (step.old_logp, step.logp[0], step.logp[1], step.sampling_logp, step.ref_logp):
        assert np.abs(found - expected).max() < 1e-4
    assert step.measurements["kl"] == pytest.approx(0.0, abs=1e-6), "a fresh adapter changes nothing"


@pytest.mark.quick_cases("ways0-qwen2", "ways1-llama", "ways1-gpt2")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("ways", [Ways(padding=False, sharing=True), Ways(padding=False, sharing=False)])
def test_where_padding_or_sharing_is_not_harmless_the_plain_way_gives_the_same_numbers(
    kind: str, ways: Ways, folders: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = next(run(folders[kind]))
    monkeypatch.setattr("grpo_core.trainers.hf.folder_policy.proved", lambda *args, **options: ways)
    found = next(run(folders[kind], model__rows_at_once=3))
    assert np.array_equal(found.tokens, expected.tokens)
    assert np.abs(found.logp - expected.logp).max() < 1e-4
    assert found.measurements["grad_norm"] == pytest.approx(expected.measurements["grad_norm"], rel=1e-3)


@pytest.mark.quick_cases("plain-0", "kl-4", "token mean with entropy-4", "kl in the reward-0")
@pytest.mark.parametrize("rank", [0, 4])
@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"objective.beta": 0.5},
        {"objective.reduction": "token", "objective.entropy_bonus": 0.1},
        {"objective.kl_in": "reward", "objective.kl": "k1", "objective.beta": 0.2},
    ],
    ids=["plain", "kl", "token mean with entropy", "kl in the reward"],
)
def test_the_gradient_of_chunks_is_that_of_the_one_loss_over_the_whole_batch(
    changes: dict[str, Any], rank: int, folders: dict[str, Path]
) -> None:
    plain = {"optimizer.kind": "sgd", "optimizer.max_grad_norm": None, "optimizer.learning_rate": 0.1}
    settings = small(folders["llama"], model__adapter_rank=rank, model__rows_at_once=3).replace({**plain, **changes})
    going = FolderLearner(settings)
    check = FolderPolicy(settings)
    before = [weight.detach().clone() for weight in going.policy.model.parameters() if weight.requires_grad]
    step = next(going)
    after = [weight.detach() for weight in going.policy.model.parameters() if weight.requires_grad]
    logp = plain_logp(check.model, step)
    mask, advantage = torch.from_numpy(step.mask), torch.from_numpy(recompute.advantage(step)).float()
    entropy = torch.zeros(step.tokens.shape)
    for row in range(len(step.tokens)):
        dist = distribution(check.model, step, row)
        entropy[row, : len(dist)] = -(dist.exp() * dist).sum(-1)
    ref_logp = None if step.ref_logp is None else torch.from_numpy(step.ref_logp)
    loss = evaluate(settings.objective, logp, logp.detach(), advantage, mask, ref_logp=ref_logp, entropy=entropy).loss
    loss.backward()
    assert metrics(step)["loss"] == pytest.approx(float(loss.detach()), abs=1e-5)
    wanted = torch.cat([w.grad.ravel() for w in check.model.parameters() if w.requires_grad])
    moved = torch.cat([(a - b).ravel() for a, b in zip(after, before, strict=True)]) / -0.1
    assert float((moved - wanted).norm()) < 5e-3 * float(wanted.norm()) > 0


def test_every_end_token_ends_a_completion_and_the_folders_own_sampling_is_ignored_and_named(
    folders: dict[str, Path],
) -> None:
    going = run(folders["gpt2"], task__max_tokens=60, task__prompts=4)
    assert ignored(folders["gpt2"]) == ("temperature = 0.6", "top_k = 20")
    step = next(going)
    ends = np.isin(step.tokens, [0, 1]) & step.mask
    assert ends.any(), "token 0 is padding too"
    assert (ends.sum(axis=-1) <= 1).all()
    lengths = step.mask.sum(axis=-1)
    for row in np.flatnonzero(ends.any(axis=-1)):
        assert ends[row, lengths[row] - 1], "nothing is drawn after it"


def test_greedy_completions_are_the_likeliest_tokens(folders: dict[str, Path]) -> None:
    policy = run(folders["qwen2"]).policy
    prompt_tokens = policy.encoded([Prompt("What is 7 plus 5?", "12"), Prompt("Hi", "")])
    tokens, mask, logp = policy.sample(
        SamplingRequest(
            prompt_tokens=prompt_tokens,
            prompt_of=np.array([0, 1, 1]),
            uniforms=np.zeros((3, 6)),
            temperature=1.0,
            likeliest=np.ones(3, bool),
            poll=lambda done, total: None,
        )
    )
    for row, of in enumerate((0, 1, 1)):
        text = [int(t) for t in prompt_tokens[of] if t >= 0]
        for t in range(int(mask[row].sum())):
            with torch.no_grad():
                dist = policy.model(input_ids=torch.tensor([text])).logits[0, -1].log_softmax(-1)
            assert tokens[row, t] == int(dist.argmax())
            assert logp[row, t] == pytest.approx(float(dist.max()), abs=1e-4)
            text.append(int(tokens[row, t]))


@pytest.mark.parametrize("rank", [0, 4])
def test_a_run_goes_on_from_a_recorded_update_as_if_it_had_not_stopped(rank: int, folders: dict[str, Path]) -> None:
    settings: dict[str, Any] = {"model__adapter_rank": rank, "optimizer__learning_rate": 1e-2}
    going = run(folders["llama"], **settings)
    whole = [next(going) for _ in range(5)]
    history = leading_to(whole[3], lambda number: whole[number - 1])
    assert len(history) == (2 if rank else 4), "full weights are not in the run file: the run is learned again"
    again = run(folders["llama"], history=history, **settings)
    assert again.drift == 0
    assert same(next(again), whole[4])


@pytest.mark.parametrize(("rank", "mu"), [(0, 1), (4, 2)])
def test_an_update_that_is_cancelled_leaves_no_trace(rank: int, mu: int, folders: dict[str, Path]) -> None:
    settings: dict[str, Any] = {"model__adapter_rank": rank, "learner__mu": mu, "optimizer__learning_rate": 1e-2}
    expected = next(run(folders["llama"], **settings))
    asked, stop = [0], [0]

    def poll() -> None:
        asked[0] += 1
        if asked[0] == stop[0]:
            raise Cancelled

    going = run(folders["llama"], poll=poll, **settings)
    for place in (1, 8, 12):
        asked[0], stop[0] = 0, place
        with pytest.raises(Cancelled):
            next(going)
    stop[0] = 0
    assert same(next(going), expected)


def test_full_weights_that_have_moved_cannot_be_put_back_and_that_is_said(folders: dict[str, Path]) -> None:
    going = run(folders["llama"], model__adapter_rank=0)
    original = going.policy.score

    def failing(*args: Any, **options: Any) -> Any:
        raise Cancelled("stopped")

    going.policy.score = failing  # type: ignore[method-assign]
    with pytest.raises(GrpoError, match="loaded, and its updates are being learned again"):
        next(going)
    going.policy.score = original  # type: ignore[method-assign]


def test_a_run_file_holds_texts_and_tokens_and_goes_on_from_its_adapter(
    folders: dict[str, Path], tmp_path: Path
) -> None:
    settings = small(folders["llama"], model__snapshot_every=1)
    going = learner(settings)
    with RunWriter.create(tmp_path / "run.grpo", settings) as writer:
        for _ in range(2):
            step = next(going)
            writer.append(step, metrics(step))
    with RunReader.open(tmp_path / "run.grpo") as reader:
        read = reader.step(2)
        assert same(read, step)
        assert reader.origin.vocabulary == origin(settings).vocabulary
        assert "<|im_start|>user\nWhat is" in prompt_text(read, 0, reader.origin)
        assert completion_text(read, 0, reader.origin)
        assert same(next(learner(settings, resume=read)), next(going))


def test_a_run_goes_on_only_from_the_files_that_it_began_with(folders: dict[str, Path]) -> None:
    with pytest.raises(SettingsError, match="its files have changed since this run began"):
        run(folders["llama"], model__digest="0123456789abcdef")


def test_an_update_is_learned_again_under_other_settings_and_leaves_nothing_behind(folders: dict[str, Path]) -> None:
    going = run(folders["llama"], optimizer__learning_rate=1e-2)
    first, second = next(going), next(going)
    copy = run(folders["llama"], optimizer__learning_rate=1e-2, history=[first])
    same_again = copy.again(second, second.settings)
    assert np.array_equal(same_again.logp, second.logp)
    other = copy.again(second, second.settings.replace({"optimizer.learning_rate": 0.0}))
    assert np.array_equal(other.logp[1], other.logp[0])
    assert np.array_equal(copy.again(second, second.settings).logp, second.logp)


@pytest.mark.parametrize(
    "changes", [{"learner.critic": True}, {"objective.kl": "exact", "objective.beta": 0.1}], ids=str
)
def test_what_needs_whole_distributions_is_refused_and_the_run_goes_on(
    changes: dict[str, Any], folders: dict[str, Path]
) -> None:
    going = run(folders["llama"])
    with pytest.raises(SettingsError, match=next(iter(changes))):
        going.settings = going.settings.replace(changes)
    assert next(going).step == 1


@pytest.mark.parametrize("kind", KINDS)
def test_every_layer_asks_on_the_way_there_and_back(kind: str, folders: dict[str, Path]) -> None:
    learner = run(folders[kind])
    model, asked = learner.policy.model, [0]

    def count() -> None:
        asked[0] += 1

    learner.policy.ask = count
    logits = model(input_ids=torch.tensor([[5, 6, 7]])).logits
    assert asked[0] == 2, "both layers"
    logits.sum().backward()
    assert asked[0] == 4, "and back"


@pytest.mark.quick_cases("1-8", "90-0")
@pytest.mark.parametrize("rank", [8, 0])
@pytest.mark.parametrize("after", [1, 40, 90])
def test_an_update_given_up_within_a_pass_leaves_the_run_as_it_was(
    rank: int, after: int, folders: dict[str, Path]
) -> None:
    given_up, undisturbed = (
        run(folders["llama"], model__adapter_rank=rank, optimizer__learning_rate=1e-3) for _ in range(2)
    )
    go_on, asked = given_up.policy.ask, [0]

    def stop() -> None:
        asked[0] += 1
        if asked[0] == after:
            raise Cancelled("enough")

    given_up.policy.ask = stop
    finished = 0
    try:
        while True:
            next(given_up)
            finished += 1
    except Cancelled:
        assert asked[0] == after
    given_up.policy.ask = go_on
    for _ in range(finished):
        next(undisturbed)
    assert same(next(given_up), next(undisturbed))
