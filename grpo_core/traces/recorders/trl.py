"""Records what TRL's GRPOTrainer computes. GRPO Lab opens the recording, recomputes the loss and explains every token.

This file is self-contained: copy it next to a training script, or import it from GRPO Lab. Add two lines to the script:

    from trl_recorder import record            # this file, under the name it was copied to
    record(trainer, "runs/tonight")            # before trainer.train()

It wraps bound methods of this one trainer (no subclass, and the class is unchanged), reads their results, and writes
them from a thread: for each step and process one file of NumPy arrays, under a temporary name and then renamed, and one
line of JSON. No collective operation is added, so DeepSpeed, FSDP, several processes and vLLM work as before. A
tensor of row numbers passes through TRL's shuffling with the batch, so that the completions of each micro-batch are
known. The training thread keeps references to tensors that exist anyway. Copying, compressing and writing happen in the
thread, behind a queue of ``QUEUE`` steps. If the disk is slower than training, complete steps are dropped, counted and
noted. A step with more or fewer losses than TRL computes for it is skipped, too. An error of the recorder disables
the recorder, with one warning, but never stops training. If warnings are errors, the warning is a line on standard
error instead. A recording ends with ``train()``: before another one, call ``record`` again, with another folder.

Tested with TRL 1.16.0 (``TRIED``). If the trainer's methods are not TRL's own (Unsloth rewrites them) or take other
arguments, the recorder only records text and rewards, and says so.

Folder: ``trace.json`` (the trainer's settings), ``tokenizer/``, and for each process ``rank0/attempt0/`` with
``step_00000001.npz``, ``index.jsonl`` (one line per step) and, for process 0, ``log.jsonl`` (what the trainer logged).
Files are readable by their owner only. They contain prompts and completions unless ``text=False``.
"""

from __future__ import annotations

import atexit
import inspect
import json
import math
import os
import queue
import sys
import threading
import time
import warnings
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager, suppress
from functools import wraps
from pathlib import Path
from typing import Any, BinaryIO

FORMAT, VERSION = "grpo-lab-trace", 2
TRIED = ("1.16.0",)
QUEUE = 4
"""Maximum number of steps that wait to be written to disk."""
LINES = 10_000
"""Maximum number of lines of the trainer's log that wait to be written to disk."""
CLOSING_SECONDS = 60.0
"""Maximum number of seconds to wait for writing to finish at the end of training."""
EXPECTED = {
    "_calculate_rewards": ("inputs", "prompts", "completions", "completion_ids_list"),
    "_generate_and_score_completions": ("inputs",),
    "_compute_loss": ("model", "inputs"),
    "_get_per_token_logps_and_entropies": ("model", "input_ids", "attention_mask", "logits_to_keep"),
    "log": ("logs", "start_time"),
}
"""Wrapped methods, and the arguments with which TRL calls them."""
LOSSES = ("grpo", "sapo", "bnpo", "dr_grpo", "dapo", "cispo", "vespo", "luspo")
SCALES = ("group", "batch", "none", "True", "False")
"""Values of TRL's ``loss_type`` and ``scale_rewards`` that GRPO Lab knows. It cannot open a trace with others."""
ROW = "grpo_lab_row"
"""Key of the tensor of row numbers in TRL's buffer of inputs."""


def record(trainer: Any, folder: str | Path, *, text: bool = True) -> Recorder | None:
    """Record every update of ``trainer`` in ``folder``. Call it before ``trainer.train()``.

    Args:
        trainer: a ``trl.GRPOTrainer``.
        folder: created if it does not exist; a restarted run can use its previous one.
        text: whether to write prompts and completions as text and token IDs; without them only numbers are written.

    Returns:
        The recorder, with the attributes ``dropped`` and ``failure``. None if it could not be set up (a warning says
        why, and training continues).
    """
    attached: list[Recorder] = []

    def begin() -> None:
        settings = trainer.args.to_dict()
        if "loss_type" not in settings:
            raise TypeError(f"{type(trainer).__name__} is not a GRPOTrainer: its settings have no loss_type")
        for name, known in (("loss_type", LOSSES), ("scale_rewards", SCALES)):
            if str(settings.get(name, known[0])) not in known:
                raise ValueError(f"{name} is {settings[name]}, and GRPO Lab knows only {', '.join(known)}")
        recorder = Recorder(trainer, Path(folder), text=text)
        recorder.attach()
        attached.append(recorder)

    if failure := attempted(begin):
        said(f"GRPO Lab records nothing: {failure}")
    return attached[0] if attached else None


class Recorder:
    """Records what one process of a trainer computes, step by step.

    Attributes:
        level: "tokens", or "texts" if the trainer's methods are not known to this file.
        reason: why only text is recorded; empty at level "tokens".
        dropped: number of steps that were lost because the disk was slower than training.
        unclear: number of steps skipped because a loss could not be assigned to its batch.
        failure: error that disabled the recorder; empty while it works.
        closed: whether the recording has ended; what the trainer computes afterwards is not recorded.
        queue, thread: the steps and log lines that wait to be written, and the thread that writes them.
    """

    def __init__(self, trainer: Any, folder: Path, *, text: bool) -> None:
        self.trainer = trainer
        self.text = text
        self.rank = int(trainer.accelerator.process_index)
        self.reason = unknown_methods(trainer)
        self.level = "texts" if self.reason else "tokens"
        self.written = self.dropped = self.unclear = 0
        self.failure = ""
        self.home = folder / f"rank{self.rank}" / f"attempt{next_attempt(folder / f'rank{self.rank}')}"
        for path in (folder, self.home.parent, self.home):
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
        if self.rank == 0:
            write_json(folder / "trace.json", description(trainer, self.level, self.reason, text))
            save_tokenizer(getattr(trainer, "processing_class", None), folder / "tokenizer")
        self._step = 0
        self._generations: list[dict[str, Any]] = []  # of the current step
        self._passes: list[list[dict[str, Any]]] = [[]]  # optimizer step -> its micro-batches
        self._rewards: Any = None
        self._capture: dict[str, Any] | None = None
        self._inputs: dict[str, Any] | None = None  # of the current micro-batch, without its row numbers
        self._row: Any = None
        self.closed = False
        self.queue: queue.Queue[dict[str, Any] | None] = queue.Queue()
        self._lines: queue.Queue[dict[str, Any]] = queue.Queue(LINES)
        self._waiting = threading.Semaphore(QUEUE)
        self.thread = threading.Thread(
            target=guarded, args=(self, self._write_all), name="grpo-lab recorder", daemon=True
        )

    def attach(self) -> None:
        """Start the writing thread, then wrap the trainer's methods. If that fails, nothing is recorded.

        Raises:
            Exception: the thread cannot start, or a method cannot be wrapped.
        """
        callback = step_callback(self)
        self.thread.start()
        try:
            self._attach(callback)
        except BaseException:
            self.failure = "the trainer's methods cannot be wrapped"
            self.queue.put(None)
            raise
        if self.reason:
            said(f"GRPO Lab records texts and rewards only: {self.reason}")

    def _attach(self, callback: Any) -> None:
        hooks: dict[str, dict[str, Any]] = {
            "_calculate_rewards": {"after": self._after_rewards},
            "_generate_and_score_completions": {"after": self._after_generation},
            "log": {"after": self._after_log},
        }
        if self.level == "tokens":
            hooks |= {
                "_get_per_token_logps_and_entropies": {"after": self._after_logps},
                "get_off_policy_mask": {"after": self._after_mask("off_policy_mask")},
                "get_high_entropy_mask": {"after": self._after_mask("entropy_mask")},
                "compute_loss": {"before": self._hide_rows, "after": self._show_rows},
                "_compute_loss": {"before": self._before_loss, "after": self._after_loss},
            }
        for name, functions in hooks.items():
            if hasattr(self.trainer, name):
                wrap(self, self.trainer, name, **functions)
        self.trainer.grpo_lab_recorder = self
        self.trainer.add_callback(callback)
        atexit.register(attempted, self.close)

    def close(self) -> None:
        """Write what is left and stop. Called at the end of training and of the process."""
        if self.closed:
            return
        guarded(self, self._finish_step)
        self.closed = True
        self.queue.put(None)
        self.thread.join(CLOSING_SECONDS)
        if self.thread.is_alive():
            said("GRPO Lab did not finish writing: the disk does not answer.")
        if self.dropped:
            said(f"GRPO Lab lost {self.dropped} steps: the disk was slower than training.")
        if self.unclear:
            said(f"GRPO Lab left out {self.unclear} steps: {UNCLEAR}.")

    def release(self) -> None:
        self._generations, self._passes, self._rewards, self._capture = [], [[]], None, None

    # -- data from the wrapped methods -------------------------------------------------------------------------------

    @property
    def _training(self) -> bool:
        return bool(self.trainer.model.training)

    def _after_rewards(self, result: Any, inputs: Any, prompts: Any, completions: Any, ids: Any) -> None:
        """Record the rewards, (B of all processes, K). Prompts and completions are this process's own."""
        if self._training:
            count = len(prompts)
            mine = slice(self.rank * count, (self.rank + 1) * count)
            self._rewards = {"rewards": result[mine].detach()}
            if self.text:
                self._rewards |= {
                    "prompts": [as_text(x) for x in prompts],
                    "completions": [as_text(x) for x in completions],
                }

    def _after_generation(self, output: dict[str, Any], inputs: Any) -> None:
        if not self._training:
            return
        if self._step_is_complete:
            self._finish_step()
        elif len(self._generations) >= self._most_generations:
            self._leave_out_step()
        if not self._generations:
            self._passes = [[]]  # values computed since the last step do not belong to a batch
        count = len(inputs)
        size = int(self.trainer.num_generations)
        number = len(self._generations)
        first_row = sum(len(earlier["group"]) for earlier in self._generations)
        group = [(self.rank * count + i) // size for i in range(count)]
        kept = {key: detached(output.get(key)) for key in GENERATED}
        rewards, self._rewards = self._rewards or {}, None
        facts = {"number": number, "group": group, "pad_id": pad_id(self.trainer)}
        self._generations.append({**facts, **kept, **rewards})
        if self.level == "tokens":
            import torch

            ids = output["completion_ids"]
            if len(ids) != count:  # TRL shuffles the row numbers with the other tensors, which have as many rows
                raise ValueError(f"{count} prompts have {len(ids)} completions")
            output[ROW] = torch.arange(first_row, first_row + count, device=ids.device)

    def _hide_rows(self, model: Any, inputs: dict[str, Any], *args: Any, **kwargs: Any) -> None:
        """Take the row numbers out of the batch that ``compute_loss`` sees, which a subclass can override."""
        self._inputs, self._row = inputs, inputs.pop(ROW, None)

    def _show_rows(self, loss: Any, model: Any, inputs: dict[str, Any], *args: Any, **kwargs: Any) -> None:
        """Put the row numbers back, for the next pass over the batch."""
        if self._row is not None:
            inputs[ROW] = self._row
        self._inputs = self._row = None

    def _before_loss(self, model: Any, inputs: dict[str, Any]) -> None:
        row = self._row if inputs is self._inputs else inputs.get(ROW)
        if self._training and row is not None:
            self._capture = {"entropy_coef": applied_entropy_coefficient(self.trainer), "row": row.detach()}

    def _after_logps(self, result: Any, *args: Any, **kwargs: Any) -> None:
        if self._capture is not None:
            logps, entropies, aux_loss = result
            self._capture |= {"logp": detached(logps), "entropy": detached(entropies), "aux_loss": detached(aux_loss)}

    def _after_mask(self, name: str) -> Any:
        def keep(result: Any, *args: Any, **kwargs: Any) -> None:
            if self._capture is not None:
                self._capture[name] = detached(result)

        return keep

    def _after_loss(self, loss: Any, model: Any, inputs: dict[str, Any]) -> None:
        capture, self._capture = self._capture, None
        if capture is None or not self._generations:
            return
        self._passes[-1].append(
            capture
            | {
                "loss": loss.detach(),
                "num_items_in_batch": detached(inputs.get("num_items_in_batch")),
                "accumulation": float(self.trainer.current_gradient_accumulation_steps),
            }
        )

    def _after_log(self, result: Any, logs: dict[str, Any], *args: Any, **kwargs: Any) -> None:
        """Record the trainer's report, with the trainer's own step number."""
        if self.rank == 0 and self._training:
            numbers = {key: float(value) for key, value in logs.items() if isinstance(value, (int, float))}
            try:
                self._lines.put_nowait({"step": int(self.trainer.state.global_step), "logs": numbers})
            except queue.Full:  # a disk that blocks this long has no room for steps either
                return
            self.queue.put({})

    # -- steps -------------------------------------------------------------------------------------------------------

    def on_train_begin(self) -> None:
        """Warn if this recording has ended and no other was begun."""
        if self.closed and self.trainer.grpo_lab_recorder is self:
            said("GRPO Lab does not record this train(): call record(trainer, another_folder) before each train().")

    def on_optimizer_step(self) -> None:
        """Handle the end of an optimizer step, which can complete the recorded update."""
        if self._passes[-1]:
            self._passes.append([])
        if self.level == "tokens" and self._step_is_complete:
            self._finish_step()
        elif self.level == "tokens" and self._used > self._expected:
            self._leave_out_step()

    @property
    def held(self) -> int:
        """The number of batches and losses held for the current step.

        Their tensors are kept until the step is complete or skipped.
        """
        return len(self._generations) + self._used

    @property
    def _used(self) -> int:
        """The number of losses computed from the batches of the current step."""
        return sum(len(micro) for micro in self._passes)

    @property
    def _expected(self) -> int:
        """The number of losses that TRL computes from the batches of the current step."""
        every = int(self.trainer.args.steps_per_generation) * int(self.trainer.num_iterations)
        return every * len(self._generations)

    @property
    def _most_generations(self) -> int:
        """The maximum number of batches of a step: those that one optimizer step uses, at least one."""
        arguments = self.trainer.args
        return max(-(-int(arguments.gradient_accumulation_steps) // int(arguments.steps_per_generation)), 1)

    def _leave_out_step(self) -> None:
        """Drop the current step, whose losses cannot be assigned to its batches, and warn the first time."""
        if not self.unclear:
            said(f"GRPO Lab leaves out steps: {UNCLEAR}. Training goes on.")
        self.unclear += 1
        self._generations, self._passes = [], [[]]

    @property
    def _step_is_complete(self) -> bool:
        """Whether an optimizer step has just ended and every generated batch has reached its number of uses."""
        if self.level == "texts":
            return bool(self._generations)
        return not self._passes[-1] and self._used == self._expected > 0

    def _finish_step(self) -> None:
        """Pass the current step to the writing thread, or drop it if the thread is too far behind."""
        generations, self._generations = self._generations, []
        passes, self._passes = [micro for micro in self._passes if micro], [[]]
        if not generations:
            return
        self._step += 1
        state = self.trainer.state
        step = {
            "number": self._step,
            "generations": generations,
            "passes": passes,
            "global_step": int(state.global_step),
            "epoch": state.epoch,
            "time": time.time(),
        }
        if self._waiting.acquire(blocking=False):
            self.queue.put(step)
        else:
            self.dropped += 1

    # -- the thread --------------------------------------------------------------------------------------------------

    def _write_all(self) -> None:
        while (step := self.queue.get()) is not None:
            if not self.failure and (failure := attempted(self._write_one, step)):
                failed(self, failure)

    def _write_one(self, step: dict[str, Any]) -> None:
        """Write a step, unless it is empty, and the log lines that wait."""
        if step:
            self._waiting.release()
            self.write(step)
            self.written += 1
        while not self._lines.empty():
            append_line(self.home / "log.jsonl", self._lines.get_nowait())

    def write(self, step: dict[str, Any]) -> None:
        """Write one step to disk, in the writing thread."""
        import numpy as np

        rows = completions_of(step["generations"])
        micro = add_passes(rows, step["passes"])
        name = f"step_{step['number']:08d}.npz"
        with whole(self.home / name) as file:
            np.savez_compressed(file, **arrays_of(rows))
        line = {key: step[key] for key in ("number", "global_step", "epoch", "time")}
        line |= {"file": name, "rows": len(rows["row"]), "passes": len(step["passes"]), "micro_batches": micro}
        append_line(self.home / "index.jsonl", line | {"dropped": self.dropped + self.unclear})


def said(sentence: str) -> None:
    """Warn with ``sentence``. Never raises.

    If warnings are errors, or cannot be shown, the sentence is written to standard error, if that is possible.
    """
    try:
        warnings.warn(sentence, stacklevel=3)
    except Exception:
        with suppress(Exception):
            sys.stderr.write(f"{sentence}\n")


def attempted(action: Any, /, *args: Any, **kwargs: Any) -> str:
    """Run ``action``. Returns its error as text, or an empty string. Only Ctrl-C and an exit are passed on."""
    try:
        action(*args, **kwargs)
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # a panic of a tokenizer's Rust code is not an Exception
        with suppress(Exception):
            return f"{type(error).__name__}: {error}"
        return type(error).__name__
    return ""


def guarded(recorder: Recorder, action: Any, /, *args: Any, **kwargs: Any) -> None:
    """Run ``action``, unless the recording has ended. An error ends the recording and does not affect training."""
    if not (recorder.failure or recorder.closed) and (failure := attempted(action, *args, **kwargs)):
        failed(recorder, failure)


def failed(recorder: Recorder, failure: str) -> None:
    """End the recording because of an error, with one warning."""
    if not recorder.failure:
        recorder.failure = failure
        said(f"GRPO Lab stopped recording ({failure}); training goes on.")
    attempted(recorder.release)


def wrap(recorder: Recorder, owner: Any, name: str, *, before: Any = None, after: Any = None) -> None:
    """Replace a method by one that calls ``before`` with its arguments, and ``after`` with its result too."""
    original = getattr(owner, name)

    @wraps(original)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        if before is not None:
            guarded(recorder, before, *args, **kwargs)
        if recorder.failure or recorder.closed:
            attempted(remove_rows, *args, **kwargs)
        result = original(*args, **kwargs)
        if after is not None:
            guarded(recorder, after, result, *args, **kwargs)
        return result

    setattr(owner, name, wrapped)


def remove_rows(*args: Any, **kwargs: Any) -> None:
    """Remove the row numbers from the batches among the arguments of a method, once the recording has ended."""
    for value in (*args, *kwargs.values()):
        if isinstance(value, MutableMapping):
            value.pop(ROW, None)


def save_tokenizer(tokenizer: Any, folder: Path) -> None:
    """Save the tokenizer in ``folder``, so that token IDs can be displayed as text.

    If that fails, they remain numbers.
    """
    if failure := attempted(lambda: tokenizer.save_pretrained(folder)):
        said(f"GRPO Lab: the tokenizer is not in the trace ({failure}).")


UNCLEAR = "this trainer computes another number of losses for a batch than TRL does, and which is whose is not known"
"""The reason why steps are skipped, for a warning."""
GENERATED = (
    "prompt_ids", "prompt_mask", "completion_ids", "completion_mask", "tool_mask", "advantages", "old_per_token_logps",
    "ref_per_token_logps", "sampling_per_token_logps", "importance_sampling_ratio",
)  # fmt: skip # table
"""Tensors of TRL's buffer that are recorded, (B, ...)."""


def unknown_methods(trainer: Any) -> str:
    """Return why the trainer's methods cannot be recorded token by token. Empty if they can."""
    if any("unsloth" in f"{kind.__module__}.{kind.__name__}".lower() for kind in type(trainer).__mro__):
        return "this trainer has been rewritten by Unsloth, which computes its loss in compiled functions of its own"
    for name, expected in EXPECTED.items():
        method = getattr(type(trainer), name, None)
        if method is None:
            return f"this trainer has no method {name}"
        file = inspect.unwrap(method).__code__.co_filename
        if name == "_compute_loss" and method.__module__.startswith("trl.experimental"):
            return f"its loss is that of {type(trainer).__name__}, which GRPO Lab does not compute"
        if "unsloth" in file.lower():
            return f"{name} has been rewritten by Unsloth"
        arguments = list(inspect.signature(inspect.unwrap(method)).parameters)[1 : 1 + len(expected)]
        if tuple(arguments) != expected:
            return f"{name} takes {', '.join(arguments)}, not {', '.join(expected)}"
    return ""


def applied_entropy_coefficient(trainer: Any) -> float:
    """Return the entropy bonus's coefficient in this micro-batch, as in TRL's ``_compute_loss``.

    It is 0 without a bonus.
    """
    if not getattr(trainer, "_entropy_bonus_enabled", False):
        return 0.0
    if getattr(trainer, "use_adaptive_entropy", False) and trainer._last_world_entropy > trainer.args.entropy_target:
        return 0.0
    return float(trainer.entropy_coef)


def completions_of(generations: list[dict[str, Any]]) -> dict[str, list[Any]]:
    """Return the columns of a step's file by name, one entry per completion of the batches, without padding."""
    columns: dict[str, list[Any]] = {name: [] for name in COLUMNS}
    for batch in generations:
        arrays = {key: as_numpy(batch.get(key)) for key in (*GENERATED, "rewards")}
        count = len(batch["group"])
        for i in range(count):
            present, asked = arrays["completion_mask"], arrays["prompt_mask"]
            length = None if arrays["completion_ids"] is None else real_length(batch, arrays, i)
            columns["row"].append(len(columns["row"]))
            columns["generation"].append(batch["number"])
            columns["group"].append(batch["group"][i])
            columns["prompt"].append(batch["prompts"][i] if "prompts" in batch else None)
            columns["completion"].append(batch["completions"][i] if "completions" in batch else None)
            prompt = None if asked is None else arrays["prompt_ids"][i][asked[i].astype(bool)].tolist()
            columns["prompt_ids"].append(prompt)
            columns["completion_ids"].append(cut(arrays["completion_ids"], i, length))
            counted = present if arrays["tool_mask"] is None or present is None else present * arrays["tool_mask"]
            columns["mask"].append(cut(counted, i, length, bool))
            columns["tool_mask"].append(cut(arrays["tool_mask"], i, length, bool))
            columns["rewards"].append(cut(arrays["rewards"], i, None))
            advantage = arrays["advantages"]
            columns["advantage"].append(None if advantage is None else advantage[i].ravel().tolist())
            for column, key in (
                ("old_logp", "old_per_token_logps"),
                ("ref_logp", "ref_per_token_logps"),
                ("sampling_logp", "sampling_per_token_logps"),
                ("sampling_ratio", "importance_sampling_ratio"),
            ):
                columns[column].append(cut(arrays[key], i, length))
    return columns


def real_length(batch: dict[str, Any], arrays: dict[str, Any], i: int) -> int:
    """Return the number of tokens of completion ``i``, up to the last one in its mask.

    A completion that TRL takes for cut off has a mask of zeros under ``mask_truncated_completions``. It does not end on
    the padding token, so all its tokens up to the last other one are then kept.
    """
    places = arrays["completion_mask"][i].nonzero()[0]
    if not len(places) and batch.get("pad_id") is not None:
        places = (arrays["completion_ids"][i] != batch["pad_id"]).nonzero()[0]
    return int(places[-1]) + 1 if len(places) else len(arrays["completion_mask"][i])


def add_passes(columns: dict[str, list[Any]], passes: list[list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """Add to each completion what each optimizer step that used it computed. Returns facts about each micro-batch."""
    for name in PASSES:
        columns[name] = [[] for _ in columns["row"]]
    facts = []
    for n, micro_batches in enumerate(passes):
        for m, micro in enumerate(micro_batches):
            logp, entropy = as_numpy(micro["logp"]), as_numpy(micro.get("entropy"))
            gates = [as_numpy(micro.get(name)) for name in ("off_policy_mask", "entropy_mask")]
            for i, row in enumerate(as_numpy(micro["row"]).tolist()):
                ids = columns["completion_ids"][row]
                length = logp.shape[1] if ids is None else len(ids)
                columns["pass"][row].append(n)
                columns["part"][row].append(m)
                columns["logp"][row].append(cut(logp, i, length))
                columns["entropy"][row].append(cut(entropy, i, length) or [])
                for name, gate in zip(("off_policy_mask", "entropy_mask"), gates, strict=True):
                    columns[name][row].append(cut(gate, i, length) or [])
            scalars = ("loss", "num_items_in_batch", "aux_loss")
            fact = {"pass": n, "part": m} | {name: scalar(micro.get(name)) for name in scalars}
            facts.append(fact | {"accumulation": micro["accumulation"], "entropy_coef": micro["entropy_coef"]})
    return facts


PASSES = ("pass", "part", "logp", "entropy", "off_policy_mask", "entropy_mask")
"""Columns with one entry for each optimizer step that used the completion."""
TYPES = {
    "row": "int32", "generation": "int32", "group": "int32", "prompt": "uint8", "completion": "uint8",
    "prompt_ids": "int32", "completion_ids": "int32", "mask": "bool", "tool_mask": "bool", "rewards": "float64",
    "advantage": "float64",
    "old_logp": "float32", "ref_logp": "float32", "sampling_logp": "float32", "sampling_ratio": "float32",
    "pass": "int32", "part": "int32", "logp": "float32", "entropy": "float32", "off_policy_mask": "float32",
    "entropy_mask": "float32",
}  # fmt: skip # table, one row per line
"""Columns and their types: float32 as computed by the trainer, except for rewards and advantages."""
COLUMNS = tuple(name for name in TYPES if name not in PASSES)
NUMBERS = ("row", "generation", "group")
"""Columns with one number per row. The others hold a list per row, or None; strings are lists of bytes."""
NESTED = ("logp", "entropy", "off_policy_mask", "entropy_mask")
"""Columns of lists of lists."""


def arrays_of(columns: dict[str, list[Any]]) -> dict[str, Any]:
    """Return the columns as flat NumPy arrays: values, and for lists ``name.lengths`` and ``name.counts``.

    A row without a list has the length -1. For lists of lists, the lengths are those of the inner lists, and the counts
    are the numbers of inner lists of each row.
    """
    import numpy as np

    arrays: dict[str, Any] = {}
    for name, rows in columns.items():
        lists = [row.encode("utf-8", "replace") if isinstance(row, str) else row for row in rows]
        if name in NESTED:
            arrays[f"{name}.counts"] = np.array([-1 if row is None else len(row) for row in lists], "int32")
            lists = [inner for row in lists for inner in row or ()]
        if name not in NUMBERS:
            arrays[f"{name}.lengths"] = np.array([-1 if row is None else len(row) for row in lists], "int32")
            lists = [value for row in lists for value in row or ()]
        arrays[name] = np.array(lists, TYPES[name])
    return arrays


def cut(array: Any, i: int, length: int | None, kind: Any = None) -> list[Any] | None:
    """Return the first ``length`` entries of row ``i`` of ``array`` (B, T), or all if that is None, as a list.

    None if there is no array.
    """
    if array is None:
        return None
    row = array[i] if length is None or array.shape[1] == 1 else array[i][:length]
    return (row if kind is None else row.astype(kind)).tolist()  # type: ignore[no-any-return]


def scalar(value: Any) -> float | None:
    """Return a one-element tensor as a number that JSON can represent. None if it is not finite."""
    if value is None:
        return None
    number = float(value)
    return number if math.isfinite(number) else None


def detached(value: Any) -> Any:
    return value.detach() if hasattr(value, "detach") else value


def as_numpy(value: Any) -> Any:
    """Return a tensor on any device as a NumPy array. Bfloat16 and half are converted to float32 exactly."""
    if value is None:
        return None
    value = value.cpu()
    if value.dtype.is_floating_point and value.element_size() < 4:
        value = value.float()
    return value.numpy()


def as_text(value: Any) -> str:
    """Return a prompt or completion as text: a string unchanged, a conversation as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def description(trainer: Any, level: str, reason: str, text: bool) -> dict[str, Any]:
    """Return the content of ``trace.json``: the trainer, its settings, and the meaning of the columns."""
    import trl

    settings = {}
    for key, value in trainer.args.to_dict().items():
        settings[key] = value if isinstance(value, (int, float, str, bool, list, type(None))) else str(value)
    if getattr(trainer, "rollout_func", None) is not None:  # then it is unknown what sampled
        settings["rollout_func"] = str(getattr(trainer.rollout_func, "__name__", ""))
    weights = getattr(trainer, "reward_weights", None)
    return {
        "format": FORMAT,
        "version": VERSION,
        "trainer": "trl",
        "trainer_version": trl.__version__,
        "tried": trl.__version__ in TRIED,
        "level": level,
        "reason": reason,
        "text": text,
        "settings": settings,
        "num_processes": int(trainer.accelerator.num_processes),
        "num_generations": int(trainer.num_generations),
        "reward_names": [str(name) for name in trainer.reward_func_names],
        "reward_weights": None if weights is None else [float(w) for w in weights],
        "eos_ids": [int(i) for i in getattr(trainer, "eos_token_ids", None) or [] if i is not None],
        "pad_id": pad_id(trainer),
        "mixed_precision": str(trainer.accelerator.mixed_precision),
        "beta": float(trainer.beta),
        "epsilon_low": float(trainer.epsilon_low),
        "epsilon_high": float(trainer.epsilon_high),
    }


def pad_id(trainer: Any) -> int | None:
    """Return the ID of the padding token of the trainer's tokenizer. None if it has none."""
    tokenizer = getattr(trainer, "_tokenizer", None) or getattr(trainer, "processing_class", None)
    return getattr(tokenizer, "pad_token_id", None)


def step_callback(recorder: Recorder) -> Any:
    """Return a callback that notifies the recorder of the end of optimizer steps and of training."""
    from transformers import TrainerCallback

    def on_train_begin(self: Any, *args: Any, **kwargs: Any) -> None:
        attempted(recorder.on_train_begin)

    def on_step_end(self: Any, *args: Any, **kwargs: Any) -> None:
        guarded(recorder, recorder.on_optimizer_step)

    def on_train_end(self: Any, *args: Any, **kwargs: Any) -> None:
        guarded(recorder, recorder.close)

    methods = {"on_train_begin": on_train_begin, "on_step_end": on_step_end, "on_train_end": on_train_end}
    return type("StepCallback", (TrainerCallback,), methods)()


def next_attempt(folder: Path) -> int:
    """Return the number of this start of the run: 0 for the first, plus 1 for each restart in the same folder."""
    taken = [int(path.name[7:]) for path in folder.glob("attempt*") if path.name[7:].isdigit()]
    return max(taken, default=-1) + 1


@contextmanager
def whole(path: Path) -> Iterator[BinaryIO]:
    """Write a file that only its owner can read, under a temporary name, so that ``path`` is never incomplete."""
    unfinished = path.with_name(f".{path.name}.part")
    with os.fdopen(os.open(unfinished, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o600), "wb") as file:
        yield file
    unfinished.replace(path)


def write_json(path: Path, value: dict[str, Any]) -> None:
    with whole(path) as file:
        file.write(json.dumps(value, indent=1).encode())


def append_line(path: Path, value: dict[str, Any]) -> None:
    """Append ``value`` to ``path`` as one line of JSON, in a single write."""
    with os.fdopen(os.open(path, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600), "ab") as file:
        file.write(json.dumps(value).encode() + b"\n")


__all__ = ["Recorder", "record"]
