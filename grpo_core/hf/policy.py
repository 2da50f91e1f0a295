"""A model from a folder as a policy (:class:`grpo_core.lm.interface.LanguagePolicy`): full weights or an adapter."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.nn import Parameter

from grpo_core import kl, recompute
from grpo_core.config import Objective, Optimizer, Settings
from grpo_core.errors import GrpoError, SettingsError
from grpo_core.hf.adapter import merged, with_adapter, with_trained_adapter
from grpo_core.hf.attentive import attend
from grpo_core.hf.chat import Chat
from grpo_core.hf.checkpointing import checkpointed, prepare_checkpointing
from grpo_core.hf.chunk_loss import chunk_loss
from grpo_core.hf.folder import look
from grpo_core.hf.loading import load
from grpo_core.hf.measuring import Measured, Measuring
from grpo_core.hf.memory import require_room
from grpo_core.hf.reference import Reference
from grpo_core.hf.refusal import refuse
from grpo_core.hf.sampling import sample
from grpo_core.hf.scoring import Batch, Ways, chunks, distributions, proved
from grpo_core.hf.snapshots import Snapshots, require_folder
from grpo_core.lm.checkpoint import device_named
from grpo_core.lm.interface import Drafts, Passes, Poll, Table
from grpo_core.lm.passes import array_of, require_finite
from grpo_core.lm.policy import Kept, State, TrainedWeights
from grpo_core.lm.problems import Prompt
from grpo_core.snapshot_file import named_file
from grpo_core.text import tr


class FolderPolicy(TrainedWeights):
    """A model from a folder, its frozen reference and the optimizer's memory.

    Attributes:
        model: transformers' or peft's own, without dropout.
        ignored: the folder's generation settings that are not followed.
        ways: what was proved harmless on this model.
        ask: called between the layers of a pass; whatever it raises ends the pass.

    Raises:
        SettingsError: the folder cannot be used, holds other files than when the run began, or needs more memory than
            there is.
    """

    def __init__(self, settings: Settings) -> None:
        wanted, device = settings.model, device_named(settings.model.device)
        files = look(Path(wanted.folder))
        if wanted.digest and wanted.digest != files.digest:
            raise refuse(files.path, tr("it holds other files than when this run began; put those back, or begin anew"))
        if files.adapter is not None:
            files.adapter.check_settings(wanted.adapter_rank, wanted.adapter_alpha)
        require_room(files, settings, torch.cuda.mem_get_info(device)[0] if device.type == "cuda" else None)
        # bfloat16 holds 3 digits, in which small steps vanish: weights that are trained are float32, under autocast
        precision = wanted.precision if wanted.adapter_rank else "float32"
        loaded = load(files, device, precision)
        self._rank, self._moved, self._aside = wanted.adapter_rank, False, False
        self.ignored, self._rows_at_once = loaded.ignored, wanted.rows_at_once
        self.ways: Ways = proved(loaded.model, tolerance=1e-4 if precision == "float32" else 2e-2)
        if wanted.checkpointing:
            prepare_checkpointing(loaded.model)
        self._snapshots, self._snapshot_folder = Snapshots(files.digest), wanted.snapshot_folder
        self._weights_aside = Snapshots(files.digest)  # they count for themselves: a question deletes no snapshot
        self._chat = Chat(loaded.tokenizer, loaded.ends, files.context)
        if files.adapter is not None:
            adapted = with_trained_adapter(loaded.model, files.adapter)
            self.model = adapted if self._rank else merged(adapted).requires_grad_(True)
        elif self._rank:
            self.model = with_adapter(loaded.model, self._rank, wanted.adapter_alpha, settings.seed)
        else:
            self.model = loaded.model.requires_grad_(True)
        self.ask: Callable[[], None] = _go_on
        attend(self.model, lambda: self.ask())
        self._reference = Reference(
            self.model, files, fresh_adapter=bool(self._rank) and files.adapter is None, device=device,
            precision=precision, ask=lambda: self.ask(),
        )  # fmt: skip
        trained = [weight for weight in self.model.parameters() if weight.requires_grad]
        super().__init__(trained, torch.zeros(1, device=device), settings.optimizer)

    @property
    def trained_parameters(self) -> int:
        """Numbers that an update changes."""
        return sum(weight.numel() for weight in self._weights)

    def check(self, settings: Settings) -> None:
        """Refuses a critic, and a loss made of whole distributions, which are not recorded.

        Raises:
            SettingsError: naming the setting.
        """
        if settings.model.checkpointing:
            prepare_checkpointing(self.model)
        if settings.model.snapshot_folder and not self._rank:
            require_folder(settings.model.snapshot_folder, 3 * 4 * self.trained_parameters)
        if settings.learner.critic:
            raise SettingsError("learner.critic", True, tr("only the character model has a critic; switch it off"))
        if settings.objective.kl == kl.EXACT and settings.objective.beta:
            raise SettingsError(
                "objective.kl",
                kl.EXACT,
                tr("the distributions over a large vocabulary are not recorded; choose k1, k2 or k3"),
            )

    # -- text ------------------------------------------------------------------------------------------------------

    def encoded(self, prompts: Sequence[Prompt]) -> np.ndarray:
        """The tokens of prompts in the model's chat template, (P, T_prompt), −1 in padding on the right."""
        return self._chat.encoded(prompts)

    def text(self, tokens: np.ndarray) -> str:
        """What a completion's tokens (L,) say, without the token that ends it."""
        return self._chat.text(tokens)

    def completion(self, text: str) -> np.ndarray:
        """The tokens (L,) of a typed completion, with the one that ends it."""
        return self._chat.completion(text)

    # -- sample and score ------------------------------------------------------------------------------------------

    def sample(
        self, prompt_tokens: np.ndarray, prompt_of: np.ndarray, uniforms: np.ndarray, *, temperature: float,
        greedy: np.ndarray, poll: Poll,
    ) -> Table:  # fmt: skip
        """One completion a row (:meth:`grpo_core.lm.interface.Sampling.sample`)."""
        return sample(
            self.model, prompt_tokens, prompt_of, uniforms, ends=self._chat.ends, padding=self.ways.padding,
            temperature=temperature, greedy=greedy, poll=poll,
        )  # fmt: skip

    def batch(self, prompt_tokens: np.ndarray, tokens: np.ndarray, mask: np.ndarray) -> Batch:
        """The batch as it is recorded; arrays of a file cannot be written to, which torch warns of."""
        return Batch(prompt_tokens=prompt_tokens, tokens=tokens, mask=np.require(mask, requirements="W"))

    def score(
        self, batch: Batch, temperature: float, poll: Poll, *, against_reference: bool = False,
        first: Measured | None = None,
    ) -> Measured:  # fmt: skip
        """The batch under the present policy, without gradients, chunk by chunk; with its divergence from the reference
        where that is asked for, and the alternatives that were chosen in ``first``."""
        measure = Measuring(batch, self.device, first=first)
        with torch.no_grad():
            parts = [*chunks(batch, self._rows_at_once, self.ways)]
            for number, rows in enumerate(parts, 1):
                poll(number, len(parts))
                dist = distributions(self.model, batch, rows, temperature, self.ways)
                measure.take(rows, dist)
                if against_reference:
                    poll(number, len(parts))
                    with self._reference.model() as model:
                        other = distributions(model, batch, rows, temperature, self.ways)
                    measure.take_reference(rows, dist, other)
        return measure.done(against_reference)

    @property
    def reference_at_hand(self) -> bool:
        """Whether scoring under the reference loads no second model."""
        return self._reference.at_hand

    def score_reference(self, batch: Batch, temperature: float, poll: Poll) -> Measured:
        """The batch under the reference: the model with its adapter off, or a frozen copy."""
        measure = Measuring(batch, self.device)
        with torch.no_grad(), self._reference.model() as model:
            parts = [*chunks(batch, self._rows_at_once, self.ways)]
            for number, rows in enumerate(parts, 1):
                poll(number, len(parts))
                measure.take(rows, distributions(model, batch, rows, temperature, self.ways))
        return measure.done(False)

    # -- train -----------------------------------------------------------------------------------------------------

    def train(
        self, settings: Settings, batch: Batch, reference: Measured | None, draft: Drafts, poll: Poll,
        number: int,
    ) -> Passes[Measured]:  # fmt: skip
        """All passes of update ``number``: each adds up the gradients of chunks of rows, then steps.

        Raises:
            NonFiniteError: a loss or a gradient is not finite.
        """
        self._rows_at_once, self._snapshot_folder = settings.model.rows_at_once, settings.model.snapshot_folder
        ways = dataclasses.replace(self.ways, sharing=self.ways.sharing and not settings.model.checkpointing)
        objective, temperature = settings.objective, settings.learner.temperature
        scores, norms, step = list[Measured](), list[float](), None
        old = torch.zeros(batch.tokens.shape, device=self.device)
        if objective.beta and objective.kl_in == "reward":  # advantages follow from the whole batch's log-probabilities
            first = self.score(batch, temperature, lambda chunk, chunks: poll(1, settings.learner.mu))
            step = draft(array_of(first.logp), None)
        for passed in range(settings.learner.mu):
            given = step if step is not None else draft(np.zeros(batch.tokens.shape, np.float32), None)
            advantage = torch.from_numpy(recompute.advantage(given)).float().to(self.device)
            measure, total = Measuring(batch, self.device, choose=passed == 0), 0.0
            for rows in chunks(batch, self._rows_at_once, self.ways):
                poll(passed + 1, settings.learner.mu)
                with checkpointed(self.model, settings.model.checkpointing):
                    dist = distributions(self.model, batch, rows, temperature, ways)
                logp = measure.take(rows, dist)
                if passed == 0:
                    old[rows, : logp.shape[1]] = logp.detach()
                loss = chunk_loss(objective, batch, rows, dist, logp, old, advantage, reference)
                poll(passed + 1, settings.learner.mu)
                loss.backward()  # type: ignore[no-untyped-call]
                total += float(loss.detach())
            if passed == 0:
                step = draft(array_of(old), None)
            require_finite(total, number, tr("the loss of pass {passed}").format(passed=passed + 1))
            poll(passed + 1, settings.learner.mu)
            norms.append(self.stepped(settings.optimizer))
            require_finite(norms[-1], number, tr("the gradient of pass {passed}").format(passed=passed + 1))
            self._moved = True
            scores.append(measure.done(False))
        assert step is not None
        return Passes(draft=step, scores=scores, norm=norms[0])

    def forget_gradients(self) -> None:
        """Drop what was added up since the last step."""
        self._optimizer.zero_grad(set_to_none=True)

    # -- record ----------------------------------------------------------------------------------------------------

    def recorded_before(self, batch: Batch, reference: Measured | None) -> dict[str, Any]:
        """The reference's log-probabilities."""
        return {} if reference is None else {"ref_logp": array_of(reference.logp)}

    def recorded_after(
        self, objective: Objective, batch: Batch, scores: list[Measured], reference: Measured | None
    ) -> dict[str, Any]:
        """Log-probabilities and entropies of every pass, measured where the distributions were, and the likeliest
        tokens of each place before the first pass, with their log-probabilities then, after the last pass and under
        the reference."""
        before, after = scores[0], scores[-1]
        assert before.top_tokens is not None and before.top_logp is not None and after.top_logp is not None
        recorded = {
            "logp": np.stack([array_of(each.logp) for each in scores]),
            "entropy": np.stack([array_of(each.entropy) for each in scores]),
            "top_tokens": before.top_tokens.cpu().numpy(),
            "top_logp": torch.stack([before.top_logp, after.top_logp]).cpu().numpy(),
        }
        if after.ref_top_logp is not None:
            recorded["ref_top_logp"] = after.ref_top_logp.cpu().numpy()
        return recorded

    def measurements(self, batch: Batch, after: Measured, reference: Measured | None) -> dict[str, float]:
        """Means over the visited places of what follows from whole distributions, which are not recorded."""
        there = torch.from_numpy(batch.mask).to(self.device)
        means = {"entropy": after.entropy, "max_prob": after.max_prob, "kl": after.divergence}
        return {name: float(table[there].mean()) for name, table in means.items() if table is not None}

    # -- snapshot --------------------------------------------------------------------------------------------------

    def kept_for(self, settings: Settings) -> Kept | None:
        """A copy to go back to; None where every weight is trained in one pass, which is given up before its step."""
        self._moved = False
        return self.kept() if self._rank or settings.learner.mu > 1 else None

    @contextmanager
    def set_aside(self) -> Iterator[None]:
        """As long as this lasts, the model may stand elsewhere: its weights and what the optimizer remembers of them
        lie in a file in the folder for snapshots, and are read back afterwards.

        Raises:
            GrpoError: they could not be written, so that nothing has changed, or could not be read back.
        """
        kind, optimizer, aside = self._kind, self._optimizer, self._weights_aside
        path = named_file(aside.write(self._snapshot_folder, self._named_weights, optimizer.state))
        if path is None:
            raise GrpoError(
                tr(
                    "The weights as they are now could not be put aside in {folder}, so the question was given up."
                ).format(folder=self._snapshot_folder)
            )
        optimizer.state.clear()
        self._aside = True
        try:
            yield
        finally:
            self._aside = False
            self.forget_gradients()
            self._kind, self._optimizer = kind, optimizer
            optimizer.state.update(aside.read_into(self._named_weights, path, self.device))
            path.unlink(missing_ok=True)

    def put_back(self, kept: Kept | None) -> None:
        """Stand where :meth:`kept_for` was asked.

        Raises:
            GrpoError: nothing was kept, and the weights have moved.
        """
        if kept is not None:
            super().put_back(kept)
            return
        self._optimizer.zero_grad(set_to_none=True)
        if self._moved and not self._aside:
            raise GrpoError(
                tr("The update was given up after its step; the model is loaded and its updates are learned again.")
            )

    def state(self) -> State:
        """The adapter and its optimizer's memory; where every weight is trained, the name of a file that holds them, or
        nothing where no snapshots are wanted: such a run is replayed."""
        if self._rank:
            return super().state()
        if not self._snapshot_folder:
            return {}
        return self._snapshots.write(self._snapshot_folder, self._named_weights, self._optimizer.state)

    def restore(self, state: State, optimizer: Optimizer) -> None:
        """Stand where :meth:`state` was taken.

        Raises:
            GrpoError: it belongs to another model, or its file cannot be read.
        """
        path = named_file(state)
        if path is None:
            super().restore(state, optimizer)
            return
        memory = self._snapshots.read_into(self._named_weights, path, self.device)
        self._kind, self._optimizer = optimizer.kind, self._made(optimizer)
        self._optimizer.state.update(memory)

    @property
    def _named_weights(self) -> dict[str, Parameter]:
        return {name: weight for name, weight in self.model.named_parameters() if weight.requires_grad}


def _go_on() -> None:
    """Asks nobody."""
