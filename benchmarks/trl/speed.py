"""One update of a model from a folder compared with one of TRL's: same model, prompts, lengths, precision and threads,
in turns. TRL generates with transformers, without vLLM.

    .venv-trl/bin/python benchmarks/trl/speed.py --model FOLDER [--rank 8] [--updates 5] [--threads 1] [--device cuda]
    .venv-trl/bin/python benchmarks/trl/speed.py --model FOLDER --device cuda --table

On a GPU, the peak memory that each side allocates in an update is also printed; both models are loaded throughout.
Neither uses gradient checkpointing or a reference. The learning rate is 0, so that both sample from the same
distribution throughout. Ours also scores the completions once more after the step and completes the watched prompts, as
it does for a user; TRL does neither. The exit code is 1 if ours is slower, in processor time per update, or in wall
time on a GPU.
"""

from __future__ import annotations

import argparse
import gc
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).parents[2]))

from grpo_core.config import Settings, folder_settings
from grpo_core.lm.batches import stream
from grpo_core.lm.problems import Prompt
from grpo_core.lm.rewards import PromptSource, parts
from grpo_core.trainers.hf.adapter_files import targets_in
from grpo_core.trainers.hf.folder import look
from grpo_core.trainers.hf.learner import FolderLearner
from grpo_core.trainers.hf.trl_script import config

TABLE = ((8, 128, "float32"), (8, 12, "float32"), (0, 128, "float32"), (8, 128, "bfloat16"))
"""Rank of the adapter (0: every weight), longest completion in tokens, and precision of each row of the table."""


@dataclass(kw_only=True)
class Times:
    """Times of the updates of one side.

    Attributes:
        wall: seconds of each update.
        processor: seconds of processor time of each update.
        sampling: seconds of each update before learning.
        tokens: completion tokens of each update.
        on_gpu: whether it is computed on the GPU.
        memory: peak memory in GB allocated on the GPU in each update; none on the CPU.
    """

    wall: list[float] = field(default_factory=list)
    processor: list[float] = field(default_factory=list)
    sampling: list[float] = field(default_factory=list)
    tokens: list[int] = field(default_factory=list)
    on_gpu: bool = False
    memory: list[float] = field(default_factory=list)

    def begin(self) -> tuple[float, float]:
        """Return the readings of the clocks before an update."""
        if self.on_gpu:
            torch.cuda.synchronize()
            torch.cuda.reset_peak_memory_stats()
        return time.perf_counter(), time.process_time()

    def end(self, begun: tuple[float, float], tokens: int, sampling: float) -> None:
        """Record an update that has just ended."""
        if self.on_gpu:
            torch.cuda.synchronize()
            self.memory.append(torch.cuda.max_memory_allocated() / 1e9)
        self.wall.append(time.perf_counter() - begun[0])
        self.processor.append(time.process_time() - begun[1])
        self.sampling.append(sampling)
        self.tokens.append(tokens)

    def line(self, name: str) -> str:
        """Return a line of the table: the medians without the first update, which is a warm-up, and the peak memory
        on a GPU.
        """
        columns = (self.wall, self.processor, self.sampling, [float(count) for count in self.tokens])
        wall, processor, sampling, tokens = (statistics.median(column[1:] or column) for column in columns)
        line = f"{name:6}{wall:10.2f} s {processor:10.2f} s {sampling:10.2f} s {tokens:10.0f}"
        return f"{line} {max(self.memory):10.2f} GB" if self.memory else line


def side_by_side(settings: Settings, updates: int, out: Path) -> tuple[Times, Times]:
    """Return the times of TRL's updates and of ours, which alternate in one process."""
    from transformers import TrainerCallback

    on_gpu = settings.model.device == "cuda"
    ours, theirs = Times(on_gpu=on_gpu), Times(on_gpu=on_gpu)
    going = FolderLearner(settings)
    trainer = trl_trainer(settings, updates, out)
    generate, seen = trainer._generate_and_score_completions, dict[str, Any]()

    def timed(inputs: Any) -> Any:
        begun = time.perf_counter()
        batch = generate(inputs)
        seen.update(sampling=time.perf_counter() - begun, tokens=int(batch["completion_mask"].sum()))
        return batch

    trainer._generate_and_score_completions = timed

    class Turns(TrainerCallback):  # type: ignore[misc]
        def on_step_begin(self, *args: Any, **more: Any) -> None:
            seen["begun"] = theirs.begin()

        def on_step_end(self, *args: Any, **more: Any) -> None:
            theirs.end(seen["begun"], seen["tokens"], seen["sampling"])
            begun = ours.begin()
            step = next(going)
            ours.end(begun, int(step.mask.sum()), step.measurements["seconds_sampling"])

    trainer.add_callback(Turns())
    trainer.train()
    return theirs, ours


def trl_trainer(settings: Settings, updates: int, out: Path) -> Any:
    """Return TRL's trainer under ``settings``, on the prompts that our learner draws, in the same order."""
    from datasets import Dataset
    from trl import GRPOConfig, GRPOTrainer

    task, rows = settings.language, [*_prompts(settings, updates)]

    def reward(completions: list[Any], answer: list[str], **_: Any) -> list[float]:
        texts = [completion[0]["content"] for completion in completions]
        return [parts(task, Prompt("", right), text)[0] for text, right in zip(texts, answer, strict=True)]

    size = task.prompts * settings.learner.group_size
    arguments = GRPOConfig(
        output_dir=str(out),
        max_steps=updates,
        per_device_train_batch_size=size,
        shuffle_dataset=False,
        use_cpu=settings.model.device == "cpu",
        report_to="none",
        save_strategy="no",
        disable_tqdm=True,
        model_init_kwargs={"dtype": settings.model.precision if settings.model.adapter_rank else "float32"},
        **config(settings),
    )
    adapter = None
    if settings.model.adapter_rank:
        from peft import LoraConfig

        names = list(targets_in(look(Path(settings.model.folder)).shapes) or ())
        adapter = LoraConfig(
            r=settings.model.adapter_rank,
            lora_alpha=settings.model.adapter_alpha,
            lora_dropout=0.0,
            target_modules=names,
            task_type="CAUSAL_LM",
        )
    return GRPOTrainer(
        model=settings.model.folder,
        args=arguments,
        reward_funcs=reward,
        train_dataset=Dataset.from_list(rows),
        peft_config=adapter,
    )


def _prompts(settings: Settings, updates: int) -> Iterator[dict[str, Any]]:
    source = PromptSource(settings.language, None)
    for number in range(1, updates + 1):
        for prompt in source.drawn(stream(settings.seed, number, 0)):
            yield {"prompt": [{"role": "user", "content": prompt.text}], "answer": prompt.answer}


def compared(settings: Settings, updates: int) -> float:
    """Print the times of TRL's updates and of ours under ``settings``. Return ours relative to TRL's, in processor
    time, or in wall time on a GPU.
    """
    model, length = settings.model, settings.language.max_tokens
    with tempfile.TemporaryDirectory() as out:
        theirs, ours = side_by_side(settings, updates, Path(out))
    trained = f"adapter of rank {model.adapter_rank}" if model.adapter_rank else "every weight"
    rows = settings.language.prompts * settings.learner.group_size
    print(f"{trained}, {model.precision}, {rows} completions of up to {length} tokens; medians of an update")
    print(f"{'':6}{'wall':>10}   {'processor':>10}   {'sampling':>10}   {'tokens':>10}")
    print(theirs.line("TRL"), ours.line("ours"), sep="\n")
    clock = "wall" if ours.on_gpu else "processor"
    ratio: float = statistics.median(getattr(ours, clock)[1:]) / statistics.median(getattr(theirs, clock)[1:])
    memory = f", and {max(ours.memory) / max(theirs.memory):.2f} of its memory" if ours.memory else ""
    print(f"Ours takes {ratio:.2f} of TRL's {clock} time{memory}.", flush=True)
    return ratio


def main() -> None:
    """Measure the times and print them."""
    parser = argparse.ArgumentParser(description="An update of ours beside one of TRL's.")
    parser.add_argument("--model", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--rank", type=int, default=8, help="of the adapter; 0: every weight")
    parser.add_argument("--updates", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--tokens", type=int, default=12, help="longest completion")
    parser.add_argument("--precision", choices=("float32", "bfloat16"), default="float32")
    parser.add_argument(
        "--table", action="store_true", help="adapter and every weight, short and long, both precisions"
    )
    options = parser.parse_args()
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    torch.set_num_threads(options.threads)
    files = look(options.model)
    print(files.description)
    one = (options.rank, options.tokens, options.precision)
    ratios = []
    for rank, tokens, precision in TABLE if options.table else (one,):
        changes = {
            "model.adapter_rank": rank,
            "model.precision": precision,
            "model.threads": options.threads,
            "model.device": options.device,
            "optimizer.learning_rate": 0.0,
            "task.accuracy_every": 100_000,
            "task.max_tokens": tokens,
        }
        settings = folder_settings(str(files.path), files.digest).replace(changes)
        ratios.append(compared(settings, options.updates))
        gc.collect()  # both models, which are parts of cycles
    sys.exit(max(ratios) > 1)


if __name__ == "__main__":
    main()
