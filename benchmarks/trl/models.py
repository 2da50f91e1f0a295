"""A model from a folder here and in TRL: the loss of the same batch, and the script that is exported for TRL."""

from __future__ import annotations

import copy
import dataclasses
import importlib
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch

from grpo_core.config import Settings
from grpo_core.record import Step
from grpo_core.trainers.audit import audit
from grpo_core.trainers.hf import folder_policy
from grpo_core.trainers.hf.learner import FolderLearner
from grpo_core.trainers.hf.sampling import standing_right
from grpo_core.trainers.hf.trl_script import script
from grpo_core.trainers.importers.trace import Trace
from tests.core.trainers.hf.tiny import KINDS, saved, small

TOLERANCE = 1e-6
"""Relative tolerance between two losses in float32."""
RECORDER = Path(__file__).parents[2] / "grpo_core/traces/recorders/trl.py"
BASE = {"learner.mu": 2, "optimizer.kind": "sgd", "optimizer.learning_rate": 0.05, "model.rows_at_once": 3}
WITH_KL = {"objective.beta": 0.04, "objective.kl": "k3"}
LOSSES: dict[str, dict[str, Any]] = {
    **{f"{kind}, every weight": {"kind": kind, "model.adapter_rank": 0, **WITH_KL} for kind in KINDS},
    **{f"{kind}, adapter": {"kind": kind, **WITH_KL} for kind in KINDS},
    "dapo": {"objective.reduction": "token"},
    "dr_grpo": {"objective.reduction": "constant", "objective.max_tokens": 8},
    "sequence level": {"objective.level": "sequence"},
    "cispo": {"objective.surrogate": "cispo", "objective.reduction": "token", "objective.clip_high": 5.0},
    "sapo": {"objective.surrogate": "sapo"},
    "temperature": {"learner.temperature": 0.7, **WITH_KL},
}
"""Name -> settings under which our learner and TRL's trainer compute the loss of one batch."""


def same_loss(name: str, folder: Path) -> tuple[bool, str]:
    """Return whether both passes over one batch have TRL's loss, and what was found.

    The advantages are random and not centred: those of a group would add up to 0, and so, nearly, would the loss of a
    first pass, for which no relative difference can be measured.
    """
    changes = dict(LOSSES[name])
    settings = small(saved(folder / "model", changes.pop("kind", "llama"))).replace({**BASE, **changes})
    step = next(FolderLearner(settings))
    given = np.random.default_rng(3).normal(1.0, 1.0, len(step.tokens)).astype(np.float32)
    policy = folder_policy.FolderPolicy(settings)
    theirs, logp = _trl_losses(settings, policy, step, given, folder)
    ours = _our_losses(settings, policy, step, given)
    off = max(abs(a - b) / abs(b) for a, b in zip(ours, theirs, strict=True))
    apart = float(np.abs(np.where(step.mask, logp - step.old_logp, 0.0)).max())
    losses = ", ".join(f"{each:.6g}" for each in ours)
    return off < TOLERANCE, f"loss {losses}: to {off:.1e} of TRL's; log-probabilities to {apart:.1e}"


def _our_losses(settings: Settings, policy: folder_policy.FolderPolicy, step: Step, given: np.ndarray) -> list[float]:
    """Return the loss of each pass as computed in training."""
    assert step.prompt_tokens is not None
    batch = policy.batch(step.prompt_tokens, step.tokens, step.mask)
    reference = None
    if settings.objective.beta:
        reference = policy.score_reference(batch, settings.learner.temperature, lambda done, total: None)
    losses: list[list[float]] = []
    module: Any = folder_policy
    plain = module.chunk_loss

    def noted(*args: Any) -> Any:
        loss = plain(*args)
        losses[-1].append(float(loss.detach()))
        return loss

    def poll(done: int, total: int) -> None:
        while len(losses) < done:
            losses.append([])

    module.chunk_loss = noted
    try:
        policy.train(
            settings,
            batch,
            reference,
            lambda old, values: dataclasses.replace(step, old_logp=old, advantage=given),
            poll,
            1,
        )
    finally:
        module.chunk_loss = plain
    return [sum(each) for each in losses]


def _trl_losses(
    settings: Settings, policy: folder_policy.FolderPolicy, step: Step, given: np.ndarray, folder: Path
) -> tuple[list[float], np.ndarray]:
    """Return the loss of each pass from ``GRPOTrainer.compute_loss``, with steps of plain gradient descent in between,
    and the log-probabilities (B, T) before the first pass.
    """
    assert step.prompt_tokens is not None
    trainer = importlib.import_module("speed").trl_trainer(
        settings.replace({"optimizer.kind": "adam"}), 1, folder / "checkpoints"
    )
    trainer.current_gradient_accumulation_steps = 1
    model = trainer.model.train()
    model.load_state_dict(copy.deepcopy(policy.model.state_dict()))
    group = settings.learner.group_size
    tokens, mask, _ = standing_right(step.prompt_tokens, torch.device("cpu"))
    inputs = {
        "prompt_ids": tokens.repeat_interleave(group, 0),
        "prompt_mask": mask.repeat_interleave(group, 0),
        "completion_ids": torch.from_numpy(step.tokens.astype(np.int64)),
        "completion_mask": torch.from_numpy(step.mask.astype(np.int64)),
        "advantages": torch.from_numpy(given),
        "num_items_in_batch": torch.tensor(int(step.mask.sum())),
    }
    if step.ref_logp is not None:
        inputs["ref_per_token_logps"] = torch.from_numpy(step.ref_logp)
    rows = {
        name: torch.cat([inputs[f"prompt_{name}"], inputs[f"completion_{name}"]], dim=1) for name in ("ids", "mask")
    }
    logp, _, _ = trainer._get_per_token_logps_and_entropies(model, rows["ids"], rows["mask"], step.tokens.shape[1])
    weights, losses = [weight for weight in model.parameters() if weight.requires_grad], list[float]()
    for _ in range(settings.learner.mu):
        loss = trainer.compute_loss(model, inputs)
        losses.append(float(loss.detach()))
        loss.backward()
        torch.nn.utils.clip_grad_norm_(weights, settings.optimizer.max_grad_norm or float("inf"))
        torch.optim.SGD(weights, lr=settings.optimizer.learning_rate).step()
        model.zero_grad()
        inputs["old_per_token_logps"] = torch.from_numpy(step.old_logp)
    return losses, logp.detach().numpy()


SCRIPTS: dict[str, dict[str, Any]] = {
    **{kind: {"kind": kind} for kind in KINDS},
    "every weight": {"model.adapter_rank": 0},
    "with KL": {"objective.beta": 0.04, "objective.kl": "k3"},
}
"""Name -> settings whose script is run for two updates."""


def runs(name: str, folder: Path) -> tuple[bool, str]:
    """Return whether the script of a tiny model trains, records, and agrees with the audit, and what was found."""
    changes = {"learner.mu": 1, "optimizer.learning_rate": 1e-3, **SCRIPTS[name]}
    settings = small(saved(folder / "model", changes.pop("kind", "llama"))).replace(changes)
    (folder / "train.py").write_text(script(settings), encoding="utf-8")
    (folder / "trl_recorder.py").write_bytes(RECORDER.read_bytes())
    done = subprocess.run(
        [sys.executable, "train.py", "--steps", "2"], cwd=folder, capture_output=True, text=True, check=False
    )
    if done.returncode:
        return False, (done.stderr.strip().splitlines() or ["it ended without a word"])[-1]
    result = audit(Trace(folder / "runs/trl"))
    worst = result.worst("loss")
    seen = "nothing compared" if worst is None else f"loss to {worst.difference:.1e}, {result.compared} numbers"
    return result.agrees and worst is not None, seen
