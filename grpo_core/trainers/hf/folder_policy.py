"""A model from a folder as a policy (:class:`grpo_core.lm.interface.LanguagePolicy`): all weights or an adapter."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from grpo_core import kl, recompute
from grpo_core.config import Objective, Settings
from grpo_core.errors import SettingsError
from grpo_core.lm.checkpoint import device_named
from grpo_core.lm.device_sampling import sent
from grpo_core.lm.interface import Drafts, Passes, Poll, SamplingRequest, Table
from grpo_core.lm.passes import array_of, require_finite
from grpo_core.objective import evaluate
from grpo_core.reductions import REDUCTIONS
from grpo_core.text import tr
from grpo_core.trainers.hf.adapter import spare_launches, trainable, with_trained_adapter
from grpo_core.trainers.hf.chat import Chat
from grpo_core.trainers.hf.folder import look
from grpo_core.trainers.hf.layers import attend, checkpointed, prepare_checkpointing
from grpo_core.trainers.hf.loading import load
from grpo_core.trainers.hf.memory import SPARE, require_space, rows_within, smaller_sentence
from grpo_core.trainers.hf.refusal import refuse
from grpo_core.trainers.hf.sampling import keeps_rows, sample, sampled_on_device
from grpo_core.trainers.hf.scoring import (
    LIKELIEST,
    Batch,
    Distributions,
    Measured,
    Measuring,
    Ways,
    chunks,
    distributions,
    proved,
)
from grpo_core.trainers.hf.weights import FolderWeights, require_folder


class FolderPolicy(FolderWeights):
    """A model from a folder and its frozen reference. The base class takes its optimizer steps, and saves and restores
    its weights.

    Attributes:
        model: a model of transformers or peft, without dropout.
        ways: the shortcuts that have been verified for this model.
        spare: bytes that rows may take which are learned from at once beyond those that the settings name.
        ask: called between the layers of a pass; any exception it raises ends the pass.

    Raises:
        SettingsError: the folder cannot be used, its files have changed since the run began, or the model needs more
            memory than is available.
    """

    def __init__(self, settings: Settings) -> None:
        wanted, device = settings.model, device_named(settings.model.device)
        torch.set_num_threads(wanted.threads)
        self._files = files = look(Path(wanted.folder))
        if wanted.digest and wanted.digest != files.digest:
            raise refuse(
                files.path, tr("its files have changed since this run began; restore them, or start a new run")
            )
        if files.adapter is not None:
            files.adapter.check_settings(wanted.adapter_rank, wanted.adapter_alpha)
        require_space(files, settings, torch.cuda.mem_get_info(device)[0] if device.type == "cuda" else None)
        # bfloat16 has 3 digits, in which small steps vanish: trained weights are float32, under autocast
        self._precision = wanted.precision if wanted.adapter_rank else "float32"
        loaded = load(files, device, self._precision)
        if not keeps_rows(loaded.model):
            raise refuse(
                files.path,
                tr(
                    "its layers keep a recurrent state, but sampling here shares keys and values between rows; "
                    "choose a model with attention layers only"
                ),
            )
        self.spare = SPARE * torch.cuda.get_device_properties(device).total_memory if device.type == "cuda" else 0.0
        self._rows_at_once = rows_within(files, settings, self.spare)
        self._learned_at_most, self._sampled_at_most = sys.maxsize, sys.maxsize
        self._batch_rows = 0  # of the last batch
        self._sampling = 0  # rows sampled now, or when memory ran out
        self.ways: Ways = proved(loaded.model, tolerance=1e-4 if self._precision == "float32" else 2e-2)
        if wanted.checkpointing:
            prepare_checkpointing(loaded.model)
        chat = Chat(loaded.tokenizer, loaded.ends, files.context, settings.language)
        self.encoded, self.text, self.completion, self._ends = chat.encoded, chat.text, chat.completion, chat.ends
        self.model = trainable(
            loaded.model, files.adapter, rank=wanted.adapter_rank, alpha=wanted.adapter_alpha, seed=settings.seed
        )
        if self.ways.one_pass:
            spare_launches(self.model)
        self.ask: Callable[[], None] = lambda: None
        attend(self.model, lambda: self.ask())
        self._fresh_adapter = bool(wanted.adapter_rank) and files.adapter is None
        self._second: Any = None  # a frozen model, loaded as the reference on first use
        super().__init__(self.model, settings, device=device, digest=files.digest)

    def check(self, settings: Settings) -> None:
        """Reject settings with a critic, or with a loss that depends on full distributions, which are not recorded.

        This also prepares checkpointing and the snapshot folder, if the settings request them.

        Raises:
            SettingsError: such a setting is used, or a request cannot be fulfilled; the message names the setting.
        """
        if settings.model.checkpointing:
            prepare_checkpointing(self.model)
        if settings.model.snapshot_folder and self._whole:
            size = 3 * 4 * self.trained_parameters  # weight and two moments of Adam, 4 bytes each
            require_folder(settings.model.snapshot_folder, size)
        if settings.learner.critic:
            raise SettingsError("learner.critic", True, tr("only the character model can have a critic; switch it off"))
        if settings.objective.kl == kl.EXACT and settings.objective.beta:
            raise SettingsError(
                "objective.kl",
                kl.EXACT,
                tr("the distributions over a large vocabulary are not recorded; choose k1, k2 or k3"),
            )

    # -- sample and score ------------------------------------------------------------------------------------------

    def sample(self, request: SamplingRequest) -> Table:
        """Sample one completion per row. Tasks in words have no tool."""
        assert request.environment is None
        self._sampling = min(len(request.prompt_of), self._sampled_at_most)
        how = (
            partial(sample, sharing=self.ways.sharing)
            if self.device.type == "cpu"
            else partial(
                sampled_on_device, prepared=self.ways.prepared, graphs=self.graphs if self.ways.fixed else None
            )
        )
        table = how(self.model, request, ends=self._ends, padding=self.ways.padding, at_once=self._sampling)
        self._sampling = 0
        return table

    def make_space(self) -> bool:
        """Free torch's cached memory, and halve the number of rows that are sampled at once, or trained on at once,
        depending on which ran out of memory, or free CUDA graphs first. Return False if that number was already one.
        """
        rows, self._sampling = self._sampling, 0
        if super().make_space():
            return True
        if rows:
            self._sampled_at_most = max(rows // 2, 1)
            return rows > 1
        rows = min(self.at_once, self._batch_rows)
        self._learned_at_most = max(rows // 2, 1)
        return rows > 1

    def smaller(self, settings: Settings) -> str:
        return smaller_sentence(self._files, settings)

    @property
    def at_once(self) -> int:
        """Number of rows in a chunk."""
        return min(self._rows_at_once, self._learned_at_most)

    def batch(
        self, prompt_tokens: np.ndarray, tokens: np.ndarray, mask: np.ndarray, present: np.ndarray | None = None
    ) -> Batch:
        """Return the batch in recorded form. Read-only arrays from a file are copied, since torch warns about them."""
        assert present is None or np.array_equal(mask, present)
        self._batch_rows = len(tokens)
        return Batch(prompt_tokens=prompt_tokens, tokens=tokens, mask=np.require(mask, requirements="W"))

    def score(
        self,
        batch: Batch,
        temperature: float,
        poll: Poll,
        *,
        against_reference: bool = False,
        first: Measured | None = None,
    ) -> Measured:
        """Score the batch under the current policy, without gradients, chunk by chunk, optionally with its divergence
        from the reference and the alternatives selected in ``first``.
        """
        measure = Measuring(batch, self.device, first=first)
        with torch.no_grad():
            parts = [*chunks(batch, self.at_once, self.ways)]
            for number, rows in enumerate(parts, 1):
                poll(number, len(parts))
                dist = distributions(self.model, batch, rows, temperature, self.ways)
                measure.take(rows, dist)
                if against_reference:
                    poll(number, len(parts))
                    with self._reference() as model:
                        other = distributions(model, batch, rows, temperature, self.ways)
                    measure.take_reference(rows, dist, other)
        return measure.done(against_reference)

    @contextmanager
    def _reference(self) -> Iterator[Any]:
        """Context manager that provides the frozen reference, for computation without gradients.

        It is the model with its adapter off, or a second model. Training a new adapter leaves the folder's model
        unchanged; training every weight, or an existing adapter from the folder, does not.
        """
        if self._fresh_adapter:
            with self.model.disable_adapter():
                yield self.model
            return
        if self._second is None:
            plain, adapter = load(self._files, self.device, self._precision).model, self._files.adapter
            self._second = plain if adapter is None else with_trained_adapter(plain, adapter).merge_and_unload()
            attend(self._second, lambda: self.ask())
        yield self._second

    def score_reference(self, batch: Batch, temperature: float, poll: Poll) -> Measured:
        """Score the batch under the reference: the model with its adapter off, or a frozen copy."""
        measure = Measuring(batch, self.device)
        with torch.no_grad(), self._reference() as model:
            parts = [*chunks(batch, self.at_once, self.ways)]
            for number, rows in enumerate(parts, 1):
                poll(number, len(parts))
                measure.take(rows, distributions(model, batch, rows, temperature, self.ways))
        return measure.done(False)

    def answer(self, batch: Batch, settings: Settings) -> dict[str, Any]:
        temperature, longest = settings.learner.temperature, batch.tokens.shape[1]
        with torch.no_grad():
            dist = distributions(self.model, batch, slice(0, 1), temperature, self.ways)
        ref_logp = np.full(longest, np.nan, dtype=np.float32)  # a second model is not loaded just for this
        if self._fresh_adapter or self._second is not None or settings.objective.beta:
            reference = self.score_reference(batch, temperature, lambda done, total: None)
            ref_logp = reference.logp[0].cpu().numpy()
        top = dist.logp[dist.context[0]].topk(min(LIKELIEST, dist.logp.shape[-1]), dim=-1)  # (T, k)
        drawn = torch.from_numpy(batch.tokens.astype(np.int64)).to(dist.logp.device)
        return {
            "logp": dist.of(drawn)[0].cpu().numpy(),
            "ref_logp": ref_logp,
            "dist_logp": np.zeros((longest, 0)),
            "top_tokens": top.indices.cpu().numpy(),
            "top_logp": top.values.cpu().numpy(),
        }

    # -- train -----------------------------------------------------------------------------------------------------

    def train(
        self,
        settings: Settings,
        batch: Batch,
        reference: Measured | None,
        draft: Drafts,
        poll: Poll,
        number: int,
    ) -> Passes:
        """Run all passes of update ``number``. Each pass accumulates the gradients of chunks of rows, then steps.

        Raises:
            NonFiniteError: a loss or a gradient is not finite.
        """
        self._rows_at_once = rows_within(self._files, settings, self.spare)
        self.snapshot_folder = settings.model.snapshot_folder
        ways = dataclasses.replace(self.ways, sharing=self.ways.sharing and not settings.model.checkpointing)
        objective, temperature = settings.objective, settings.learner.temperature
        scores, norms, step = list[Measured](), list[float](), None
        old = torch.zeros(batch.tokens.shape, device=self.device)
        if objective.beta and objective.kl_in_reward:  # advantages follow from the whole batch's log-probabilities
            first = self.score(batch, temperature, lambda chunk, chunks: poll(1, settings.learner.mu))
            step = draft(array_of(first.logp), None)
        for passed in range(settings.learner.mu):
            given = step if step is not None else draft(np.zeros(batch.tokens.shape, np.float32), None)
            advantage = torch.from_numpy(recompute.advantage(given)).float().to(self.device)
            sampling = None
            if objective.importance_cap is not None and given.sampling_logp is not None:
                sampling = torch.from_numpy(given.sampling_logp.copy()).to(self.device)
            measure, total = Measuring(batch, self.device, choose=passed == 0), torch.zeros((), device=self.device)
            for rows in chunks(batch, self.at_once, self.ways):
                poll(passed + 1, settings.learner.mu)
                with checkpointed(self.model, settings.model.checkpointing):
                    dist = distributions(self.model, batch, rows, temperature, ways)
                logp = measure.take(rows, dist)
                if passed == 0:
                    old[rows, : logp.shape[1]] = logp.detach()
                loss = chunk_loss(objective, batch, rows, dist, logp, old, advantage, reference, sampling)
                poll(passed + 1, settings.learner.mu)
                loss.backward()  # type: ignore[no-untyped-call]
                total += loss.detach()
            if passed == 0:
                step = draft(array_of(old), None)
            require_finite(float(total), number, tr("the loss of pass {passed}").format(passed=passed + 1))
            poll(passed + 1, settings.learner.mu)
            norms.append(self.stepped(settings.optimizer))
            require_finite(norms[-1], number, tr("the gradient of pass {passed}").format(passed=passed + 1))
            scores.append(measure.done(False))
        assert step is not None
        return Passes(draft=step, scores=scores, norm=norms[0])

    # -- record ----------------------------------------------------------------------------------------------------

    def recorded_before(self, batch: Batch, reference: Measured | None) -> dict[str, Any]:
        return {} if reference is None else {"ref_logp": array_of(reference.logp)}

    def recorded_after(
        self, objective: Objective, batch: Batch, scores: list[Measured], reference: Measured | None
    ) -> dict[str, Any]:
        """Return the log-probabilities and entropies of every pass, measured while the distributions were available,
        and the likeliest tokens of each position before the first pass, with their log-probabilities before the first
        pass, after the last pass and under the reference.
        """
        before, after = scores[0], scores[-1]
        assert before.top_tokens is not None and before.top_logp is not None and after.top_logp is not None
        recorded = {
            "logp": array_of(torch.stack([each.logp for each in scores])),
            "entropy": array_of(torch.stack([each.entropy for each in scores])),
            "top_tokens": before.top_tokens.cpu().numpy(),
            "top_logp": torch.stack([before.top_logp, after.top_logp]).cpu().numpy(),
        }
        if after.ref_top_logp is not None:
            recorded["ref_top_logp"] = after.ref_top_logp.cpu().numpy()
        return recorded

    def measurements(self, batch: Batch, after: Measured, reference: Measured | None) -> dict[str, float]:
        """Return means over the visited positions of quantities that need the distributions."""
        means = {"entropy": after.entropy, "max_prob": after.max_prob, "kl": after.divergence}
        given = {name: table for name, table in means.items() if table is not None}
        there = torch.from_numpy(batch.mask)
        return {
            name: float(table[there].mean())
            for name, table in zip(given, torch.stack([*given.values()]).cpu(), strict=True)
        }


def chunk_loss(
    objective: Objective,
    batch: Batch,
    rows: slice,
    dist: Distributions,
    logp: Tensor,
    old_logp: Tensor,
    advantage: Tensor,
    reference: Measured | None,
    sampling: Tensor | None,
) -> Tensor:
    """Return the loss () of ``rows``, from :func:`grpo_core.objective.evaluate`, with the denominator of the full
    batch.

    Args:
        batch: all rows, whose mask (B, T) marks the tokens that are trained on.
        dist: distributions of the chunk, used for the entropy bonus.
        logp: (n, T_chunk) log-probabilities of the chunk's sampled tokens, with gradients.
        old_logp: (B, T) log-probabilities before the first pass.
        advantage: (B,) or (B, T).
        reference: the batch under the reference, if the objective has a KL penalty.
        sampling: (B, T) log-probabilities computed by the sampler; None without an importance cap.
    """
    longest, device = logp.shape[1], logp.device
    mask = sent(batch.mask[rows, :longest], device)
    counted = float(max(int(batch.mask.sum()), 1))
    denominator = counted if REDUCTIONS[objective.reduction].counts_tokens else float(len(batch.tokens))
    own = advantage[rows] if advantage.ndim == 1 else advantage[rows, :longest]
    entropy = {"entropy": kl.entropy(dist.logp)[dist.context]} if objective.entropy_bonus else {}
    ref_logp = None if reference is None else reference.logp[rows, :longest]
    terms = evaluate(
        objective,
        logp,
        old_logp[rows, :longest],
        own,
        mask,
        ref_logp=ref_logp,
        sampling_logp=None if sampling is None else sampling[rows, :longest],
        denominator=denominator,
        **entropy,
    )
    loss: Tensor = terms.loss
    return loss
