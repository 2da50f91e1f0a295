r"""Records what verl's actor computes. GRPO Lab opens the recording, recomputes the loss and explains every token.

This file is self-contained. Copy it to a location on Python's path, and add two things to the training command:

    GRPO_LAB_TRACE=$PWD/runs/tonight python -m verl.trainer.main_ppo ... \
        actor_rollout_ref.model.external_lib=verl_recorder        # this file, under the name it was copied to

verl imports that module in each process that loads the model. On a Ray cluster that is already running, the variable
has to be passed to Ray: ``+ray_kwargs.ray_init.runtime_env.env_vars.GRPO_LAB_TRACE=/shared/runs/tonight``. A script
that creates the worker itself calls ``record(worker, folder)``.

It wraps methods of the training worker and the method with which the trainer calls it, reads their arguments and
results, and writes them from a thread: for each update and process one file of NumPy arrays, under a temporary name and
then renamed, and one line of JSON. No collective operation is added. A tensor of row numbers passes through verl's
mini-batches with the batch, so that the completions of each micro-batch are known. The trainer's step and its settings
for the advantage are passed in the same way.

The training thread pads each micro-batch's log-probabilities once more and keeps references to tensors that exist
anyway. Copying, decoding, compressing and writing happen in the thread, behind a queue of ``QUEUE`` updates. If the
disk is slower than training, complete updates are dropped, counted and noted. An error of the recorder disables the
recorder, with one warning, but never stops training. If warnings are errors, the warning is a line on standard error
instead.

Tested with verl 0.9.1 (``TRIED``), FSDP2, the loss ``ppo_loss``. Other engines and losses are not recorded, with a
warning.

Folder: ``trace.json`` (the actor's settings, and the trainer's for the advantage), ``tokenizer/``, and for each
data-parallel process ``rank0/attempt0/`` with ``step_00000001.npz``, ``index.jsonl`` (one line per update) and, for
process 0, ``log.jsonl`` (what the actor reported). Files are readable by their owner only. They contain prompts and
completions unless ``text=False`` (or ``GRPO_LAB_TEXT=0``).
"""

from __future__ import annotations

import atexit
import hashlib
import json
import math
import os
import queue
import sys
import threading
import time
import warnings
from collections.abc import Iterator, Mapping, MutableMapping
from contextlib import contextmanager, suppress
from functools import wraps
from pathlib import Path
from typing import Any, BinaryIO

FORMAT, VERSION = "grpo-lab-trace", 2
TRIED = ("0.9.1",)
ENGINES = ("fsdp", "fsdp2")
"""Names of verl's engines that the recorder supports."""
LOSSES = ("vanilla", "gspo", "sapo", "cispo", "gpg", "bypass_mode")
"""Values of verl's ``policy_loss.loss_mode`` whose loss GRPO Lab can recompute."""
QUEUE = 4
"""Maximum number of updates that wait to be written to disk."""
CLOSING_SECONDS = 60.0
"""Maximum number of seconds to wait for writing to finish at the end of training."""
FOLDER, TEXT = "GRPO_LAB_TRACE", "GRPO_LAB_TEXT"
"""Environment variables: the folder to record to, and one that is 0 to omit text."""
ROW = "grpo_lab_row"
"""Key of the tensor of row numbers in verl's batch."""
TOLD = "grpo_lab_trainer"
"""Key of the data that the trainer sends to the worker: its step and settings as JSON."""
WORKERS = "verl.workers.engine_workers"
"""Module of verl with the class of the workers that are recorded."""
UNTOLD = "GRPO Lab: the trainer's settings are not in the trace"
"""Beginning of the warning if the trainer cannot send its step and settings."""
TRAINERS = {"verl.trainer.ppo.ray_trainer": "RayPPOTrainer", "verl.trainer.ppo.v1.trainer_base": "PPOTrainer"}
"""Module -> name of the trainer class of verl that it contains."""
OF_THE_TRAINER = {
    "algorithm": ("adv_estimator", "norm_adv_by_std_in_grpo", "use_kl_in_reward", "gamma", "lam", "rollout_correction"),
    "data": ("max_response_length",),
    "actor_rollout_ref.rollout": ("name", "temperature", "top_p", "top_k", "n"),
}
"""Recorded settings of the trainer: those of the advantages and the sampler, and the maximum length of completions."""
LEFT_OUT = ("_target_", "checkpoint", "profiler", "engine", "model_config", "global_batch_info", "qat", "fsdp_config")
"""Settings of the actor that are not recorded, because they do not affect the loss."""


def record(worker: Any, folder: str | Path, *, text: bool = True) -> Recorder | None:
    """Record every update of ``worker`` in ``folder``. Call it after the worker's ``init_model()``.

    Args:
        worker: verl's ``ActorRolloutRefWorker``, or its ``TrainingWorker`` with ``ppo_loss`` as its loss.
        folder: created if it does not exist; a restarted run can use its previous one.
        text: whether to write prompts and completions as text and token IDs; without them only numbers are written.

    Returns:
        The recorder, with the attributes ``dropped`` and ``failure``. None if it could not be set up (a warning says
        why, and training continues), or if another process has the same numbers (sequence parallelism).
    """
    attached: list[Recorder] = []

    def begin() -> None:
        actor = getattr(worker, "actor", None) or worker
        if reason := unknown(actor):
            said(f"GRPO Lab records nothing: {reason}")
        elif actor.engine.is_mp_src_rank_with_outputs():
            recorder = Recorder(actor, Path(folder), text=text)
            recorder.attach()
            attached.append(recorder)
            mode = flat(recorder.config).get("policy_loss.loss_mode")
            if mode not in LOSSES:
                known = ", ".join(LOSSES)
                said(f"GRPO Lab records tokens, but cannot recompute verl's loss_mode {mode} (it can {known}).")

    if failure := attempted(begin):
        said(f"GRPO Lab records nothing: {failure}")
    return attached[0] if attached else None


class Recorder:
    """Records what one process of an actor computes, update by update.

    Attributes:
        dropped: number of updates that were lost because the disk was slower than training.
        failure: error that disabled the recorder; empty while it works.
        closed: whether the recording has ended; what the worker computes afterwards is not recorded.
        queue, thread: the updates that wait to be written, and the thread that writes them.
    """

    def __init__(self, worker: Any, folder: Path, *, text: bool) -> None:
        self.worker, self.folder, self.text = worker, folder, text
        self.config = worker.loss_fn.keywords["config"]
        self.rank = int(worker.engine.get_data_parallel_rank())
        self.processes = int(worker.engine.get_data_parallel_size())
        self.tokenizer = getattr(worker.model_config, "tokenizer", None)
        self.written = self.dropped = 0
        self.failure = ""
        self.home = folder / f"rank{self.rank}" / f"attempt{next_attempt(folder / f'rank{self.rank}')}"
        for path in (folder, self.home.parent, self.home):
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._number = 0
        self._batch: dict[str, Any] | None = None  # of the current update
        self._passes: list[list[dict[str, Any]]] = [[]]  # optimizer step -> its micro-batches
        self._trainer: dict[str, Any] = {}
        self._temperature: float | None = None
        self._described = False
        self.closed = False
        self.queue: queue.Queue[dict[str, Any] | None] = queue.Queue()
        self._waiting = threading.Semaphore(QUEUE)
        self.thread = threading.Thread(
            target=guarded, args=(self, self._write_all), name="grpo-lab recorder", daemon=True
        )

    def attach(self) -> None:
        """Start the writing thread, then wrap the worker's methods. If that fails, nothing is recorded.

        Raises:
            Exception: the thread cannot start, or a method cannot be wrapped.
        """
        self.thread.start()
        try:
            wrap(self, self.worker, "train_mini_batch", before=self._before_update, after=self._after_update)
            wrap(self, self.worker, "train_batch", after=self._after_optimizer_step)
            wrap(self, self.worker, "loss_fn", after=self._after_loss)
            self.worker.grpo_lab_recorder = self
        except BaseException:
            self.failure = "the worker's methods cannot be wrapped"
            self.queue.put(None)
            raise
        atexit.register(attempted, self.close)

    def close(self) -> None:
        """Write what is left and stop. Called at the end of the process."""
        if self.closed:
            return
        self.closed = True
        self.queue.put(None)
        self.thread.join(CLOSING_SECONDS)
        if self.thread.is_alive():
            said("GRPO Lab did not finish writing: the disk does not answer.")
        if self.dropped:
            said(f"GRPO Lab lost {self.dropped} updates: the disk was slower than training.")

    def release(self) -> None:
        self._batch, self._passes = None, [[]]

    # -- data from the wrapped methods -------------------------------------------------------------------------------

    def _before_update(self, data: Any) -> None:
        """Keep the batch of an update, (B, ...), which verl does not change, and number its rows."""
        import torch

        self._trainer = json.loads(data[TOLD]) if TOLD in data else {}
        self._passes = [[]]
        self._batch = {key: data[key] for key in BATCH if key in data}
        self._temperature = data["temperature"] if "temperature" in data else None  # noqa: SIM401 - a TensorDict
        data[ROW] = torch.arange(data.batch_size[0])

    def _after_loss(self, result: Any, *, model_output: Any, data: Any, dp_group: Any = None) -> None:
        """Record a micro-batch's loss and the model's outputs for its tokens, (b, T)."""
        if self._batch is None or ROW not in data:
            return
        from verl.workers.utils.padding import no_padding_2_padding

        entropy = model_output.get("entropy")
        self._passes[-1].append(
            {
                "row": data[ROW],
                "logp": no_padding_2_padding(detached(model_output["log_probs"]), data),
                "entropy": None if entropy is None else no_padding_2_padding(detached(entropy), data),
                "loss": detached(result[0]),
                "num_items_in_batch": data["batch_num_tokens"],
                "global_batch_size": data["global_batch_size"],
                "width": width(data["response_mask"]),
            }
        )

    def _after_optimizer_step(self, result: Any, *args: Any, **kwargs: Any) -> None:
        if self._passes[-1]:
            self._passes.append([])

    def _after_update(self, result: Any, *args: Any, **kwargs: Any) -> None:
        """Pass the update to the writing thread, or drop it if the thread is too far behind."""
        batch, self._batch = self._batch, None
        passes, self._passes = [micro for micro in self._passes if micro], [[]]
        if batch is None or not passes:
            return
        self._number += 1
        update = {
            "number": self._number,
            "batch": batch,
            "passes": passes,
            "trainer": self._trainer,
            "global_step": int(self._trainer.get("step", self._number)),
            "time": time.time(),
            "temperature": self._temperature,
            "report": None if result is None or self.rank else result["metrics"],
        }
        if self._waiting.acquire(blocking=False):
            self.queue.put(update)
        else:
            self.dropped += 1

    # -- the thread --------------------------------------------------------------------------------------------------

    def _write_all(self) -> None:
        while (update := self.queue.get()) is not None:
            self._waiting.release()
            if self.failure:
                continue
            if failure := attempted(self.write, update):
                failed(self, failure)
            else:
                self.written += 1

    def write(self, update: dict[str, Any]) -> None:
        """Write one update to disk, in the writing thread."""
        import numpy as np

        if self.rank == 0 and not self._described:
            write_json(self.folder / "trace.json", description(self, update))
            if self.tokenizer is not None:
                save_tokenizer(self.tokenizer, self.folder / "tokenizer")
            self._described = True
        rows = completions_of(update["batch"], self.tokenizer if self.text else None, self.text)
        micro = add_passes(rows, update["passes"])
        if not self.text:  # needed up to this point for the lengths
            for name in ("prompt_ids", "prompt", "completion"):
                rows[name] = [None] * len(rows["row"])
            rows["completion_ids"] = [[-1] * len(ids) for ids in rows["completion_ids"]]
        name = f"step_{update['number']:08d}.npz"
        with whole(self.home / name) as file:
            np.savez_compressed(file, **arrays_of(rows))
        if update["report"] is not None:
            append_line(self.home / "log.jsonl", {"step": update["global_step"], "logs": report(update["report"])})
        line = {key: update[key] for key in ("number", "global_step", "time")}
        line |= {"file": name, "rows": len(rows["row"]), "passes": len(update["passes"]), "micro_batches": micro}
        append_line(self.home / "index.jsonl", line | {"trainer_steps": 1, "dropped": self.dropped})


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


BATCH = (
    "prompts", "responses", "attention_mask", "response_mask", "old_log_probs", "ref_log_prob", "rollout_log_probs",
    "rollout_is_weights", "advantages", "token_level_rewards", "token_level_scores", "rm_scores", "uid",
)  # fmt: skip # table
"""Recorded parts of verl's batch: tensors (B, ...), padded or nested, and the id of each completion's prompt."""
REWARDS = ("token_level_rewards", "token_level_scores", "rm_scores")
"""Possible sources of a completion's reward, as a sum over its tokens. The first one that exists is used."""


def unknown(worker: Any) -> str:
    """Return why a worker's updates cannot be recorded. Empty if they can."""
    loss = getattr(worker, "loss_fn", None)
    function = getattr(loss, "func", loss)
    if function is None:
        return "the worker has no loss yet; call record after init_model()"
    if getattr(function, "__name__", "") != "ppo_loss" or "config" not in getattr(loss, "keywords", {}):
        return f"the loss is {getattr(function, '__name__', function)}, not verl's ppo_loss"
    engine = str(worker.engine_config.strategy)
    return "" if engine in ENGINES else f"the engine is {engine}; recorded are {', '.join(ENGINES)}"


def width(mask: Any) -> int:
    """Return T, the width to which verl pads the completions of a micro-batch."""
    return int(mask.offsets().diff().max()) if mask.is_nested else int(mask.shape[1])


def completions_of(batch: dict[str, Any], tokenizer: Any, text: bool) -> dict[str, list[Any]]:
    """Return the columns of an update's file by name, one entry per completion, without padding."""
    columns: dict[str, list[Any]] = {name: [] for name in COLUMNS}
    there = {key: rows_of(batch[key]) for key in BATCH if key in batch and key != "uid"}
    prompts, lengths = there["prompts"], [len(row) for row in there["responses"]]
    if "attention_mask" in there and not batch["prompts"].is_nested:
        before = [len(row) for row in prompts]
        seen = [row.astype(bool) for row in there["attention_mask"]]
        prompts = [row[keep[:first]] for row, keep, first in zip(prompts, seen, before, strict=True)]
        lengths = [int(keep[first:].sum()) for keep, first in zip(seen, before, strict=True)]
    names = list(batch["uid"]) if "uid" in batch else [row.tobytes() for row in prompts]
    rewards = next((there[key] for key in REWARDS if key in there), None)
    for i, length in enumerate(lengths):
        ids, mask = there["responses"][i][:length].tolist(), there["response_mask"][i][:length].astype(bool)
        columns["row"].append(i)
        columns["generation"].append(0)
        columns["group"].append(number_of(names[i]))
        columns["prompt_ids"].append(prompts[i].tolist())
        columns["completion_ids"].append(ids)
        columns["prompt"].append(None if tokenizer is None else tokenizer.decode(prompts[i].tolist()))
        columns["completion"].append(None if tokenizer is None else tokenizer.decode(ids))
        columns["mask"].append(mask.tolist())
        columns["rewards"].append(None if rewards is None else [float(rewards[i].sum(dtype="float64"))])
        columns["advantage"].append(advantage_of(there["advantages"][i][:length], mask))
        for column, key in (
            ("old_logp", "old_log_probs"),
            ("ref_logp", "ref_log_prob"),
            ("sampling_logp", "rollout_log_probs"),
            ("sampling_ratio", "rollout_is_weights"),
        ):
            columns[column].append(there[key][i][:length].tolist() if key in there else None)
    return columns


def rows_of(tensor: Any) -> list[Any]:
    """Return the rows of a tensor (B, T), padded or nested, as NumPy arrays."""
    if tensor.is_nested:
        return [as_numpy(row) for row in tensor.unbind()]
    return list(as_numpy(tensor))


def number_of(name: Any) -> int:
    """Return a number for the id of a prompt that is the same in every process: 52 bits of a hash."""
    data = name if isinstance(name, bytes) else str(name).encode()
    return int(hashlib.sha256(data).hexdigest()[:13], 16)


def advantage_of(values: Any, mask: Any) -> list[float]:
    """Return the advantage of each token, or a single one if all tokens in the loss have the same advantage.

    If no token is in the loss, return a single 0.
    """
    counted = values[mask]
    if not len(counted):
        return [0.0]
    return [float(counted[0])] if (counted == counted[0]).all() else [float(x) for x in values]


def add_passes(columns: dict[str, list[Any]], passes: list[list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """Add to each completion what each optimizer step that used it computed. Returns facts about each micro-batch."""
    for name in PASSES:
        columns[name] = [[] for _ in columns["row"]]
    facts = []
    for n, micro_batches in enumerate(passes):
        for m, micro in enumerate(micro_batches):
            logp, entropy = as_numpy(micro["logp"]), as_numpy(micro["entropy"])
            for i, row in enumerate(as_numpy(micro["row"]).tolist()):
                length = len(columns["completion_ids"][row])
                columns["pass"][row].append(n)
                columns["part"][row].append(m)
                columns["logp"][row].append(logp[i][:length].tolist())
                columns["entropy"][row].append([] if entropy is None else entropy[i][:length].tolist())
            scalars = ("loss", "num_items_in_batch", "global_batch_size", "width")
            facts.append({"pass": n, "part": m} | {name: scalar(micro[name]) for name in scalars})
    return facts


PASSES = ("pass", "part", "logp", "entropy")
"""Columns with one entry for each optimizer step that used the completion."""
TYPES = {
    "row": "int32", "generation": "int32", "group": "int64", "prompt": "uint8", "completion": "uint8",
    "prompt_ids": "int32", "completion_ids": "int32", "mask": "bool", "rewards": "float64", "advantage": "float64",
    "old_logp": "float32", "ref_logp": "float32", "sampling_logp": "float32", "sampling_ratio": "float32",
    "pass": "int32", "part": "int32", "logp": "float32", "entropy": "float32",
}  # fmt: skip # table, one row per line
"""Columns and their types: float32 as computed by the trainer, except for rewards and advantages."""
COLUMNS = tuple(name for name in TYPES if name not in PASSES)
NUMBERS = ("row", "generation", "group")
"""Columns with one number per row. The others hold a list per row, or None; strings are lists of bytes."""
NESTED = ("logp", "entropy")
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


def scalar(value: Any) -> float | None:
    """Return a number, or a one-element tensor, as a number that JSON can represent. None if it is not finite."""
    if value is None:
        return None
    number = float(value)
    return number if math.isfinite(number) else None


def report(metrics: Any) -> dict[str, float]:
    """Return the actor's own metrics of an update by name, averaged over its mini-batches as in verl's reports."""
    numbers: dict[str, float] = {}
    for name, values in dict(metrics).items():
        each = values if isinstance(values, (list, tuple)) else [values]
        try:
            mean = sum(map(float, each)) / len(each)
        except (TypeError, ValueError, ZeroDivisionError):
            continue
        if not name.startswith("perf/"):
            numbers[name] = mean
    return numbers


def description(recorder: Recorder, update: dict[str, Any]) -> dict[str, Any]:
    """Return the content of ``trace.json``: the trainer, its settings, and the meaning of the columns."""
    import verl

    settings = flat(recorder.config) | update["trainer"].get("settings", {})
    autocast = str(getattr(recorder.worker.engine, "_autocast_dtype", "")).removeprefix("torch.")
    tokenizer, end = recorder.tokenizer, getattr(recorder.tokenizer, "eos_token_id", None)
    return {
        "format": FORMAT,
        "version": VERSION,
        "trainer": "verl",
        "trainer_version": verl.__version__,
        "tried": verl.__version__ in TRIED,
        "level": "tokens",
        "reason": "",
        "text": recorder.text,
        "settings": settings | {"temperature": scalar(update["temperature"]), "autocast": autocast},
        "num_processes": recorder.processes,
        "num_generations": int(recorder.config.rollout_n),
        "reward_names": ["score"],
        "reward_weights": [1.0],
        "eos_ids": [] if end is None else [int(end)],
        "pad_id": getattr(tokenizer, "pad_token_id", None),
    }


def flat(config: Mapping[str, Any], before: str = "") -> dict[str, Any]:
    """Flatten nested settings, with names joined by dots."""
    settings: dict[str, Any] = {}
    for key in config:
        value, name = config[key], f"{before}{key}"
        if key in LEFT_OUT:
            continue
        if isinstance(value, Mapping):
            settings |= flat(value, f"{name}.")
        else:
            settings[name] = value if isinstance(value, (int, float, str, bool, type(None))) else str(value)
    return settings


# -- as a module that verl imports -------------------------------------------------------------------------------------


def record_all() -> None:
    """Record each actor of this process that receives its loss from now on, and make the trainers send their step."""
    if WORKERS in sys.modules and (failure := attempted(record_workers, WORKERS, "TrainingWorker")):
        said(f"GRPO Lab records nothing: {failure}")
    for module, name in TRAINERS.items():
        if module in sys.modules and (failure := attempted(tell_worker, module, name)):
            said(f"{UNTOLD} ({failure}).")


def record_workers(module: str, name: str) -> None:
    """Record workers of a class as soon as they receive the actor's loss. Critics are not recorded."""
    kind = getattr(sys.modules[module], name)
    original = kind.set_loss_fn

    def begin(worker: Any) -> None:
        if getattr(getattr(worker.loss_fn, "func", None), "__name__", "") != "value_loss":
            record(worker, os.environ[FOLDER], text=os.environ.get(TEXT, "1") != "0")

    @wraps(original)
    def set_loss_fn(self: Any, *args: Any, **kwargs: Any) -> Any:
        result = original(self, *args, **kwargs)
        if failure := attempted(begin, self):
            said(f"GRPO Lab records nothing: {failure}")
        return result

    kind.set_loss_fn = set_loss_fn


def tell_worker(module: str, name: str) -> None:
    """Make trainers of a class send their step and settings with each batch of the actor."""
    kind = getattr(sys.modules[module], name)
    original, failures = kind._update_actor, list[str]()

    def tell(trainer: Any, batch: Any, *args: Any, **kwargs: Any) -> None:
        told = batch.meta_info if hasattr(batch, "meta_info") else batch.extra_info
        told[TOLD] = json.dumps({"step": int(trainer.global_steps), "settings": told_settings(trainer.config)})

    @wraps(original)
    def _update_actor(*args: Any, **kwargs: Any) -> Any:
        if not failures and (failure := attempted(tell, *args, **kwargs)):
            failures.append(failure)
            said(f"{UNTOLD} ({failure}).")
        return original(*args, **kwargs)

    kind._update_actor = _update_actor


def told_settings(config: Any) -> dict[str, Any]:
    """Return the trainer's settings listed in :data:`OF_THE_TRAINER`, by their names in verl."""
    settings: dict[str, Any] = {}
    for part, names in OF_THE_TRAINER.items():
        given = config
        for key in part.split("."):
            given = given.get(key) or {}
        settings |= flat({name: given.get(name) for name in names if given.get(name) is not None}, f"{part}.")
    return settings


if os.environ.get(FOLDER):
    record_all()


__all__ = ["Recorder", "record"]
