"""Pretraining: a model that can do arithmetic, with the habit of going from left to right.

GRPO elicits what a model already samples now and then. So the data holds both ways of working an expression out: a
share by precedence, the rest from left to right. Both are carried out without mistakes, so that after pretraining
little is left to repair but the habit. One working in twenty restates its last result (``=14=14``), which is harmless,
until a reward pays for "=".
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
from grpo_core.lm import problems
from grpo_core.lm.model import Transformer, initialized
from grpo_core.lm.vocabulary import STOP, encode, padded

DATA = {"easy": 0.3, "sweet_spot": 0.4, "hard": 0.3}
"""How often each difficulty stands in the data; the hopeless one never does."""
RIGHT = {"easy": 1.0, "sweet_spot": 0.4, "hard": 0.15}
"""Share of workings by precedence."""
RESTATED = 0.05
"""Share of workings that restate their last result, and chance of each further time."""
WARM_UP = 100


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """Recipe of a checkpoint.

    Attributes:
        size: of the model.
        steps: of AdamW.
        batch: workings a step.
        learning_rate: at its highest, after a warm-up of 100 steps and before a cosine to a hundredth.
        seed: fixes weights and data.
        threads: on the CPU.
    """

    size: Model
    steps: int = 2500
    batch: int = 256
    learning_rate: float = 4e-3
    seed: int = 1
    threads: int = 2


def pretrained(
    recipe: Recipe, partial: Path, *, cancelled: Callable[[], bool], progress: Callable[[int, float], None]
) -> Transformer:
    """The model that ``recipe`` makes. Goes on from ``partial`` if that is there.

    Args:
        recipe: what to make.
        partial: a file that is renewed every 250 steps and when cancelled; removed at the end.
        cancelled: asked before every step.
        progress: told (steps done, loss in nats a token).

    Raises:
        Cancelled: ``cancelled()`` turned true; the same call goes on from there.
        GrpoError: ``partial`` belongs to another recipe.
    """
    torch.set_num_threads(recipe.threads)
    model = initialized(Transformer(recipe.size), recipe.seed)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.0, betas=(0.9, 0.98), weight_decay=0.01, fused=True)
    done = _resumed(recipe, model, optimizer, partial) if partial.exists() else 0
    for step in range(done, recipe.steps):
        if cancelled():
            _keep(recipe, model, optimizer, partial, step)
            raise Cancelled(f"Stopped after {step} steps; the same command goes on from there.")
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
    """The data of a step: tokens (B, T) and which of the tokens after the first count, boolean (B, T − 1)."""
    numbers = np.random.default_rng((recipe.seed, step))
    lines = [example(numbers) for _ in range(recipe.batch)]
    rows = [encode(prompt) + encode(work) + [STOP] for prompt, work in lines]
    table = padded(rows, max(map(len, rows)))
    place = np.arange(table.shape[1])
    after = place[1:] >= np.array([len(prompt) for prompt, _ in lines])[:, None]
    return torch.from_numpy(np.maximum(table, 0)).long(), torch.from_numpy(after & (table[:, 1:] >= 0))


def example(numbers: np.random.Generator) -> tuple[str, str]:
    """A random prompt (``2+3*4=``) and a working of it, which goes from left to right as often as the habit wants."""
    kind = str(numbers.choice(list(DATA), p=list(DATA.values())))
    prompt = problems.drawn(kind, numbers).text
    work = problems.working(prompt.rstrip("="), left_to_right=numbers.random() >= RIGHT[kind])
    while numbers.random() < RESTATED:
        work += "=" + work.rpartition("=")[2]
    return prompt, work


def schedule(step: int, steps: int) -> float:
    """Share of the learning rate at ``step`` of ``steps``: a linear warm-up, then a cosine down to 1 %."""
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
    except Exception as error:  # whatever a damaged file makes the library raise
        raise GrpoError(f"{path.name} cannot be read ({error}); delete it to begin anew.") from None
    if about.get("recipe") != repr(recipe):
        raise GrpoError(f"{path.name} was begun with another recipe; finish it with that one, or delete it.")
    with torch.no_grad():
        for name, weight in model.named_parameters():
            weight.copy_(tensors[name])
            optimizer.state[weight] = {
                key.partition("/")[2]: value for key, value in tensors.items() if key.startswith(name + "/")
            }
    return int(about["step"])
