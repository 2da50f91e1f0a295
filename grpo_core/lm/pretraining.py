"""Pretraining of the shipped checkpoints: one that does arithmetic but tends to work from left to right, and one that
can call a calculator but mostly guesses (:mod:`grpo_core.lm.calculator`).

GRPO elicits what a model already samples now and then. The data therefore contain both ways of evaluating an
expression: a share by precedence, the rest from left to right. Both are free of mistakes, so after pretraining, hardly
anything but the habit is left to unlearn. One worked solution in twenty repeats its last result (``=14=14``), which is
harmless until a reward pays for "=".
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from safetensors import safe_open
from safetensors.torch import save_file
from torch.nn import functional as F  # noqa: N812 - as everywhere

from grpo_core.config import Model
from grpo_core.errors import Cancelled, GrpoError
from grpo_core.lm import calculator, problems
from grpo_core.lm.model import Transformer, initialized
from grpo_core.lm.vocabulary import STOP, encode, padded

DATA = {"easy": 0.3, "sweet_spot": 0.4, "hard": 0.3}
"""Share of each difficulty in the data. The hopeless difficulty is not included."""
RIGHT = {"easy": 1.0, "sweet_spot": 0.4, "hard": 0.15}
"""Share of worked solutions that respect precedence, by difficulty."""
RESTATED = 0.05
"""Share of worked solutions that restate their last result, and probability of each further repetition."""
WARM_UP = 100
Part = tuple[str, bool]
"""A part of a completion, and whether the model learns to write it. A tool's replies are not learned."""


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """Recipe for training a checkpoint.

    Attributes:
        task: the task whose completions it learns, a key of :data:`EXAMPLES`.
        batch: worked solutions per step.
        learning_rate: maximum learning rate, after a warm-up of 100 steps and before a cosine decay to 1 %.
    """

    size: Model
    task: str = "arithmetic"
    steps: int = 2500
    batch: int = 256
    learning_rate: float = 4e-3
    seed: int = 1
    threads: int = 2


def pretrained(
    recipe: Recipe, partial: Path, *, poll: Callable[[], None], progress: Callable[[int, float], None]
) -> Transformer:
    """Train the model of ``recipe``, continuing from the file ``partial`` if it exists.

    Args:
        partial: a file that is rewritten every 250 steps and on cancellation, and removed at the end.
        progress: called with (steps done, loss in nats per token).

    Raises:
        Cancelled: ``poll`` raised it; the same call continues from there.
        GrpoError: ``partial`` belongs to another recipe.
    """
    torch.set_num_threads(recipe.threads)
    model = initialized(Transformer(recipe.size), recipe.seed)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.0, betas=(0.9, 0.98), weight_decay=0.01, fused=True)
    done = _resumed(recipe, model, optimizer, partial) if partial.exists() else 0
    for step in range(done, recipe.steps):
        try:
            poll()
        except Cancelled:
            _keep(recipe, model, optimizer, partial, step)
            raise Cancelled(f"Stopped after {step} steps; the same command continues from there.") from None
        optimizer.param_groups[0]["lr"] = recipe.learning_rate * schedule(step, recipe.steps)
        tokens, counted = batch(recipe, step)
        logits = model(tokens[:, :-1])
        loss = F.cross_entropy(logits[counted], tokens[:, 1:][counted])
        optimizer.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        progress(step + 1, float(loss.detach()))
        if (step + 1) % 250 == 0:
            _keep(recipe, model, optimizer, partial, step + 1)
    partial.unlink(missing_ok=True)
    return model


def batch(recipe: Recipe, step: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the data of a step: tokens (B, T), and a boolean mask (B, T − 1) of the tokens after the first, True for
    those that count.
    """
    numbers = np.random.default_rng((recipe.seed, step))
    rows, learned = list[list[int]](), list[list[int]]()
    for _ in range(recipe.batch):
        prompt, parts = EXAMPLES[recipe.task](numbers)
        whole = [(prompt, False), *parts]
        rows.append([*encode("".join(text for text, _ in whole)), STOP])
        learned.append([int(own) for text, own in whole for _ in text] + [1])
    longest = max(map(len, rows))
    table = padded(rows, longest)
    return torch.from_numpy(np.maximum(table, 0)).long(), torch.from_numpy(padded(learned, longest)[:, 1:] > 0)


def _worked(numbers: np.random.Generator) -> tuple[str, list[Part]]:
    prompt, work = example(numbers)
    return prompt, [(work, True)]


def example(numbers: np.random.Generator) -> tuple[str, str]:
    """Return a random prompt (``2+3*4=``) and its worked solution, which runs from left to right unless it is drawn to
    respect precedence (:data:`RIGHT`).
    """
    kind = str(numbers.choice(list(DATA), p=list(DATA.values())))
    prompt = problems.drawn(kind, numbers).text
    work = problems.working(prompt.rstrip("="), left_to_right=numbers.random() >= RIGHT[kind])
    while numbers.random() < RESTATED:
        work += "=" + work.rpartition("=")[2]
    return prompt, work


def called(numbers: np.random.Generator) -> tuple[str, list[Part]]:
    """Return a random prompt of the calculator task with the completion of an agent that seldom calls the tool
    properly: it guesses, calls the tool with more than one operation at once, stops halfway, or calculates.
    """
    expression = calculator.expression(numbers)
    terms, value = problems.terms(expression), problems.answer(expression)
    parts = list[Part]()

    def ask(call: str) -> str:
        parts.extend([(f"({call})", True), (calculator.calculated(call) + " ", False)])
        return calculator.calculated(call)

    def calculate() -> None:
        rest = terms
        while len(rest) > 1:
            rest = [ask("".join(rest[:3])), *rest[3:]]
        parts.append((rest[0], True))

    def guess() -> None:
        digits = str(value)
        parts.append((digits[0] + "".join(str(numbers.integers(10)) for _ in digits[1:]), True))

    chance = numbers.random()
    if len(terms) == 3:
        if chance < 0.25:
            calculate()
        elif chance < 0.45:
            a, sign, b = terms
            ask(str(numbers.choice([a + sign, sign + b, a + sign + sign + b])) if chance < 0.35 else expression)
            calculate() if chance < 0.3 else guess()
        else:
            guess()
    elif chance < 0.12:
        calculate()
    elif chance < 0.3:
        ask(expression)
        calculate() if chance < 0.21 else guess()
    elif chance < 0.5:
        between = ask("".join(terms[:3]))
        guess() if chance < 0.4 else parts.append((between, True))
    else:
        guess()
    return calculator.prompt(expression).text, parts


EXAMPLES: dict[str, Callable[[np.random.Generator], tuple[str, list[Part]]]] = {
    "arithmetic": _worked,
    "calculator": called,
}
"""Generators of training examples by task. Each returns a random prompt and the parts of its completion."""


def schedule(step: int, steps: int) -> float:
    """Return the factor of the learning rate at ``step`` of ``steps``: a linear warm-up, then a cosine decay to 1 %."""
    warm = min((step + 1) / WARM_UP, 1.0)
    return warm * (0.01 + 0.99 * 0.5 * (1 + math.cos(math.pi * step / steps)))


def _state(model: Transformer, optimizer: torch.optim.Optimizer) -> Iterator[tuple[str, torch.Tensor]]:
    for name, weight in model.named_parameters():
        yield name, weight
        for key, value in sorted(optimizer.state[weight].items()):
            yield f"{name}/{key}", value


def _keep(recipe: Recipe, model: Transformer, optimizer: torch.optim.Optimizer, path: Path, step: int) -> None:
    tensors = {name: value.detach().contiguous() for name, value in _state(model, optimizer)}
    temporary = path.with_name(path.name + ".new")
    save_file(tensors, temporary, {"recipe": repr(recipe), "step": str(step)})
    temporary.replace(path)


def _resumed(recipe: Recipe, model: Transformer, optimizer: torch.optim.Optimizer, path: Path) -> int:
    try:
        with safe_open(path, framework="pt") as file:
            about = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - it is no mapping
    except Exception as error:  # the library can raise anything on a damaged file
        raise GrpoError(f"{path.name} cannot be read ({error}); delete it to start again.") from None
    if about.get("recipe") != repr(recipe):
        raise GrpoError(f"{path.name} was started with another recipe; finish it with that recipe, or delete it.")
    with torch.no_grad():
        for name, weight in model.named_parameters():
            weight.copy_(tensors[name])
            optimizer.state[weight] = {
                key.partition("/")[2]: value for key, value in tensors.items() if key.startswith(name + "/")
            }
    return int(about["step"])
