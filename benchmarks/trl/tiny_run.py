"""A real TRL run small enough for any machine: a random Llama of some 20,000 parameters, recorded.

    python benchmarks/trl/tiny_run.py OUT --set loss_type=dapo --set beta=0.04 --steps 3

Needs TRL (see ``requirements.txt`` in this folder), not GRPO Lab; ``torchrun`` runs it on several processes.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import importlib.util
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

RECORDER = Path(__file__).parents[2] / "grpo_core/traces/recorders/trl.py"
CHARACTERS = "0123456789+-*= abcdefghijklmnopqrstuvwxyz"


def module_at(path: Path) -> Any:
    """Import a file as a standalone module, like the recorder next to a user's script."""
    found = importlib.util.spec_from_file_location(path.stem, path)
    assert found is not None and found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


def tokenizer() -> Any:
    """Return a tokenizer with one token per character."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    names = ["<pad>", "<eos>", "<unk>", *CHARACTERS]
    inner = Tokenizer(models.WordLevel({name: i for i, name in enumerate(names)}, unk_token="<unk>"))
    inner.pre_tokenizer = pre_tokenizers.Split("", "isolated")
    inner.decoder = decoders.Fuse()
    made: Any = PreTrainedTokenizerFast
    return made(tokenizer_object=inner, pad_token="<pad>", eos_token="<eos>", unk_token="<unk>", padding_side="left")


def model(seed: int, words: Any, dropout: float = 0.0) -> Any:
    """Return a random Llama with one layer of width 32 and the given dropout on its attention."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=len(words),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=2,
        max_position_embeddings=128,
        pad_token_id=words.pad_token_id,
        eos_token_id=words.eos_token_id,
        bos_token_id=None,
        attention_dropout=dropout,
    )
    return LlamaForCausalLM(config)


def digits(completions: list[str], **_: Any) -> list[float]:
    """Return the share of digits in each completion."""
    return [sum(c.isdigit() for c in text) / max(len(text), 1) for text in completions]


def shortness(completions: list[str], **_: Any) -> list[float]:
    """Reward shorter completions more."""
    return [-0.02 * len(text) for text in completions]


def trainer(
    out: Path,
    *,
    steps: int,
    settings: dict[str, Any],
    fault: str = "",
    edits: Sequence[tuple[str, str, str]] = (),
    rewards: Sequence[Callable[..., list[float]]] = (),
    dropout: float = 0.0,
) -> Any:
    """Return a GRPOTrainer. ``settings`` are fields of its config, ``fault`` is one of ``faults.py``.

    ``edits`` are changes of TRL's source, as in ``faults.py``. ``rewards`` are reward functions to use instead of
    digits and shortness, and ``dropout`` is that of the model's attention.
    """
    from datasets import Dataset
    from trl import GRPOConfig, GRPOTrainer

    words = tokenizer()
    # TRL loads the reference policy from the folder of the model. Each process has a separate folder: a process that
    # rewrites the file while another has it mapped into memory ends the other with a bus error.
    folder = out / f"model{os.environ.get('RANK', '')}"
    model(1, words, dropout).save_pretrained(folder)
    words.save_pretrained(folder)
    chosen: dict[str, Any] = {
        "output_dir": str(out / "checkpoints"),
        "per_device_train_batch_size": 8,
        "num_generations": 4,
        "max_completion_length": 10,
        "max_steps": steps,
        "learning_rate": 1e-2,
        "logging_steps": 1,
        "seed": 3,
        "report_to": "none",
        "save_strategy": "no",
        "use_cpu": True,
        "bf16": False,
        "disable_tqdm": True,
        "lr_scheduler_type": "constant",
    }
    chosen |= settings
    prompts = [f"{a}+{b}=" for a in range(1, 9) for b in range(1, 9)]
    kind = GRPOTrainer
    if fault:
        kind = importlib.import_module("faults").plant(GRPOTrainer, fault)
    if edits:
        kind = importlib.import_module("faults").edited(kind, tuple(edits))
    return kind(
        model=str(folder),
        reward_funcs=list(rewards) or [digits, shortness],
        args=GRPOConfig(**chosen),
        train_dataset=Dataset.from_dict({"prompt": prompts}),
        processing_class=words,
    )


def main() -> None:
    """Train the tiny model and record the run."""
    parser = argparse.ArgumentParser(description="A tiny TRL run, recorded.")
    parser.add_argument("out", type=Path)
    parser.add_argument("--steps", type=int, default=3, help="optimizer steps")
    parser.add_argument("--set", action="append", default=[], metavar="FIELD=VALUE", help="a field of TRL's GRPOConfig")
    parser.add_argument("--fault", default="", help="a planted fault, one of faults.py")
    parser.add_argument("--plain", action="store_true", help="without the recorder")
    options = parser.parse_args()
    settings = {}
    for pair in options.set:
        name, _, value = pair.partition("=")
        try:
            settings[name] = ast.literal_eval(value)
        except (ValueError, SyntaxError):
            settings[name] = value
    made = trainer(options.out, steps=options.steps, settings=settings, fault=options.fault)
    recording = None if options.plain else module_at(RECORDER).record(made, options.out / "trace")
    made.train()
    made.accelerator.wait_for_everyone()
    made.accelerator.end_training()  # gloo's threads abort a process that ends while another still talks to it
    if recording is not None and recording.failure:
        sys.exit(f"the recorder failed: {recording.failure}")


if __name__ == "__main__":
    main()
