"""Cost of the recorder for the training thread, at the size of a real step: 512 completions of up to 1,000 tokens.

    python benchmarks/trl/cost.py [STEPS]

Needs torch and pyarrow, not TRL: the trainer here has TRL's methods and tensors of a real step's size but computes
nothing. The time inside the recorder's own code in that thread is measured; the writer's processor time is spent in
another thread, while the trainer generates.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).parents[2]))

from grpo_core.traces.recorders import trl

ROWS, TOKENS, MICRO_BATCHES = 512, 1000, 16
HELD_MS = 5.0
"""Maximum milliseconds per step for which the recorder may block the training thread."""


class Trainer:
    """The methods that the recorder wraps, with results of a real step's size."""

    def __init__(self) -> None:
        self.accelerator = SimpleNamespace(process_index=1)  # process 0 would describe a real trainer's settings
        self.model = SimpleNamespace(training=True)
        self.args = SimpleNamespace(steps_per_generation=MICRO_BATCHES, gradient_accumulation_steps=1)
        self.state = SimpleNamespace(global_step=0, epoch=0.0)
        self.num_generations, self.num_iterations = 8, 1
        self.current_gradient_accumulation_steps = MICRO_BATCHES

    def add_callback(self, callback: Any) -> None:
        """Do nothing: the loop below signals the end of a step."""

    def _calculate_rewards(self, inputs: Any, prompts: Any, completions: Any, completion_ids_list: Any) -> torch.Tensor:
        return torch.randn(2 * ROWS, 2)  # of both processes

    def _generate_and_score_completions(self, inputs: list[Any]) -> dict[str, Any]:
        self._calculate_rewards(inputs, ["prompt"] * ROWS, ["word " * TOKENS] * ROWS, None)
        lengths = torch.randint(TOKENS // 2, TOKENS + 1, (ROWS, 1))
        mask = (torch.arange(TOKENS)[None] < lengths).long()
        return {
            "prompt_ids": torch.randint(0, 150_000, (ROWS, 50)),
            "prompt_mask": torch.ones(ROWS, 50).long(),
            "completion_ids": torch.randint(0, 150_000, (ROWS, TOKENS)),
            "completion_mask": mask,
            "advantages": torch.randn(ROWS),
            "ref_per_token_logps": torch.randn(ROWS, TOKENS),
            "num_items_in_batch": mask.sum(),
        }

    def _compute_loss(self, model: Any, inputs: dict[str, Any]) -> torch.Tensor:
        self._get_per_token_logps_and_entropies(model, None, None, None)
        return torch.tensor(0.1)

    def _get_per_token_logps_and_entropies(
        self, model: Any, input_ids: Any, attention_mask: Any, logits_to_keep: Any
    ) -> tuple[torch.Tensor, torch.Tensor, None]:
        count = ROWS // MICRO_BATCHES
        return torch.randn(count, TOKENS), torch.rand(count, TOKENS), None

    def log(self, logs: dict[str, float], start_time: float | None = None) -> None:
        """Do nothing."""


class Timed(trl.Recorder):
    """A recorder that measures the time spent in its own code, without the methods that it wraps."""

    own_seconds = 0.0


def timed(recorder: Any, action: Any, /, *args: Any, **kwargs: Any) -> None:
    """Run a hook of the recorder and add its time."""
    begun = time.perf_counter()
    plain(recorder, action, *args, **kwargs)
    recorder.own_seconds += time.perf_counter() - begun


plain, trl.guarded = trl.guarded, timed


def one_step(trainer: Trainer, recorder: Timed) -> float:
    """Run a generation and its optimizer step. Return the milliseconds for which the recorder blocked the thread."""
    recorder.own_seconds = 0.0
    batch = trainer._generate_and_score_completions([{}] * ROWS)
    size = ROWS // MICRO_BATCHES
    for start in range(0, ROWS, size):
        of_rows = {name: x[start : start + size] for name, x in batch.items() if x.ndim}
        trainer._compute_loss(None, of_rows | {"num_items_in_batch": batch["num_items_in_batch"]})
    trainer.state.global_step += 1
    trl.guarded(recorder, recorder.on_optimizer_step)
    return 1e3 * recorder.own_seconds


def main() -> None:
    """Print the cost of each step. The exit code is 1 if the median is above the limit."""
    steps = int(sys.argv[1]) if len(sys.argv) > 1 else 8
    with tempfile.TemporaryDirectory() as folder:
        trainer = Trainer()
        recorder = Timed(trainer, Path(folder) / "trace", text=True)
        trl.step_callback = lambda recorder: None  # transformers may not be installed
        recorder.attach()
        held, processor = [], []
        for number in range(1, steps + 1):
            began = time.process_time() - time.thread_time()
            held.append(one_step(trainer, recorder))
            while recorder.written < number and not recorder.failure:
                time.sleep(0.01)
            processor.append(time.process_time() - time.thread_time() - began)
        recorder.close()
        size = next(Path(folder).rglob("step_*.npz")).stat().st_size
    if recorder.failure:
        sys.exit(recorder.failure)
    median = sorted(held)[len(held) // 2]
    print(f"held: median {median:.2f} ms, most {max(held):.2f} ms a step of {ROWS} x {TOKENS} tokens")
    print(f"writer: {1e3 * sorted(processor)[len(processor) // 2]:.0f} ms of processor time a step, {size:,} bytes")
    sys.exit(median > HELD_MS)


if __name__ == "__main__":
    main()
