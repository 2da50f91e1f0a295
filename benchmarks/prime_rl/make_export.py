"""Create the token export of prime-rl's trainer for recorded rollouts, with prime-rl's own code, on a CPU.

    python benchmarks/prime_rl/make_export.py PRIME_RL ROLLOUTS OUT

PRIME_RL is a checkout of prime-rl (559b447), ROLLOUTS a ``traces.jsonl`` of verifiers, OUT the folder of the run. Needs
torch, pydantic, prime-pydantic-config, msgspec, jaxtyping and beartype. The trainer's log-probabilities are the
sampler's with noise; packing, loss, export and configuration are prime-rl's. The metrics are written in the format of
its file monitor. The test fixture was created from ``tests/data/sources/verifiers``.
"""

from __future__ import annotations

import importlib
import json
import shutil
import sys
import types
from pathlib import Path
from typing import Any

import torch

WORKERS, LENGTH = 2, 16


def samples_of(rollouts: Path, sample: Any) -> dict[int, list[Any]]:
    """Return prime-rl's training samples of each step, one per branch, as created by its ``trace_to_samples``."""
    steps: dict[int, list[Any]] = {}
    for line in map(json.loads, rollouts.read_text("utf-8").splitlines()):
        nodes = line["traces"][0]["nodes"]
        trained: set[int] = set()
        for leaf in sorted(set(range(len(nodes))) - {node.get("parent") for node in nodes}):
            path = [leaf]
            while (parent := nodes[path[0]].get("parent")) is not None:
                path.insert(0, parent)
            ids = [number for place in path for number in nodes[place]["token_ids"]]
            mask = [counts and place not in trained for place in path for counts in nodes[place]["mask"]]
            trained |= {place for place in path if any(nodes[place]["mask"])}
            steps.setdefault(line["run"]["work"]["step"], []).append(
                sample(
                    token_ids=ids,
                    mask=mask,
                    logprobs=spread(nodes, path, "logprobs"),
                    env_name="sums",
                    advantages=spread(nodes, path, "advantages"),
                    temperatures=[1.0] * len(ids),
                )
            )
    return steps


def spread(nodes: list[Any], path: list[int], name: str) -> list[float]:
    """Return the stream ``name`` of a branch, with a number for every token, 0 for tokens that the policy did not
    write.
    """
    whole = []
    for place in path:
        values = iter(nodes[place].get(name, []))
        whole += [next(values) if counts else 0.0 for counts in nodes[place]["mask"]]
    return whole


def main(prime: Path, rollouts: Path, out: Path) -> None:
    for folder in ("src", "packages/prime-rl-configs/src"):
        sys.path.insert(0, str(prime / folder))
    utils: Any = types.ModuleType("prime_rl.utils.utils")  # the real one imports wandb
    utils.import_object = None
    sys.modules["prime_rl.utils.utils"] = utils
    torch._dynamo.config.disable = True
    batch, configs, loss, export = (
        importlib.import_module(f"prime_rl.{name}")
        for name in ("trainer.batch", "configs.trainer", "trainer.rl.loss", "trainer.rl.token_export")
    )
    types_ = importlib.import_module("prime_rl.transports.rollouts.types")
    dump = importlib.import_module("prime_rl.utils.config").dump_resolved_config
    settings = configs.DefaultLossConfig(adv_tau=0.5, kl_tau=0.01)
    trainer = configs.TrainerConfig(loss=settings, enable_token_export=True, output_dir=Path("outputs"))
    shutil.rmtree(out, ignore_errors=True)
    (out / "configs").mkdir(parents=True)
    whole = dump(trainer)
    kept = {name: whole[name] for name in ("loss", "optim", "monitors", "max_steps", "enable_token_export")}
    (out / "configs" / "trainer.json").write_text(json.dumps(kept, indent=2), "utf-8")
    (out / "configs" / "orchestrator.json").write_text(json.dumps({"num_train_workers": WORKERS}), "utf-8")
    generator = torch.Generator().manual_seed(0)
    rl_loss = loss.setup_rl_loss_fn(settings)
    exporters = [export.TokenExporter(out, rank) for rank in range(WORKERS)]
    with (out / "metrics.jsonl").open("w", encoding="utf-8") as metrics:
        for step, samples in samples_of(rollouts, types_.TrainingSample).items():
            ranks = batch.prepare_batch(samples, LENGTH, WORKERS, lambda lengths: sum(lengths))
            scale = sum(sum(micro.loss_mask) for micros in ranks for micro in micros)
            losses = []
            for exporter, micros in zip(exporters, ranks, strict=True):
                for number, micro in enumerate(micros):
                    tensors = {
                        "input_ids": torch.tensor([micro.input_ids]),
                        "position_ids": torch.tensor([micro.position_ids]),
                        "loss_mask": torch.tensor([micro.loss_mask]),
                        "advantages": torch.tensor([micro.advantages]),
                        "inference_logprobs": torch.tensor([micro.inference_logprobs]),
                        "env_names": micro.env_names,
                    }
                    by_sampler = tensors["inference_logprobs"]
                    logp = (by_sampler + 0.4 * torch.randn(by_sampler.shape, generator=generator)).clamp(max=-0.01)
                    entropy = torch.rand(logp.shape, generator=generator)
                    lengths = micro.sequence_lengths
                    value, _ = loss.compute_loss(
                        *(x.squeeze(0).split(lengths) for x in (logp, by_sampler)),
                        None,
                        *(tensors[name].squeeze(0).split(lengths) for name in ("advantages", "loss_mask")),
                        None,
                        None,
                        None,
                        rl_loss,
                        scale,
                        1,
                        1,
                    )
                    losses.append(value.detach().reshape(1))
                    exporter.export(step, number, tensors, {"logprobs": logp, "entropy": entropy}, lengths, settings)
            for exporter in exporters:
                exporter.mark_stable()
            metrics.write(json.dumps({"step": step, "time": 0.0, "optim/lr": 1e-6}) + "\n")
            metrics.write(json.dumps({"step": step, "time": 0.0, "loss/mean": torch.cat(losses).mean().item()}) + "\n")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
