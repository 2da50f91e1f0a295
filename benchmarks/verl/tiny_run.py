"""A real verl update small enough for any machine: a random Llama of some 20,000 parameters, recorded.

    python benchmarks/verl/tiny_run.py OUT --set actor_rollout_ref.actor.loss_agg_mode=seq-mean-token-mean --steps 3

Needs verl (see ``requirements.txt`` in this folder), not GRPO Lab; ``torchrun`` runs it on several processes.

These parts are verl's: ``DataProto``, the trainer's advantages, rollout correction and ``RayPPOTrainer._update_actor``,
the worker (``ActorRolloutRefWorker``) with its mini-batches and loss, and FSDP2. In place of vLLM and Ray, Transformers
samples from a copy of the model in bfloat16, so that its log-probabilities differ like those of another engine, and the
worker is called in this process.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import os
import shutil
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "trl")]
os.environ.setdefault("RANK", "0")
os.environ.setdefault("WORLD_SIZE", "1")
os.environ.setdefault("LOCAL_WORLD_SIZE", os.environ["WORLD_SIZE"])
os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
os.environ.setdefault("MASTER_PORT", "0")

RECORDER = HERE.parents[1] / "grpo_core/traces/recorders/verl.py"
LENGTH = 10
"""Maximum number of tokens in a completion, to which verl pads."""
PROMPTS, SIZE = 4, 4
"""Number of prompts in a step, and of completions of each."""
SETTINGS = {
    "actor_rollout_ref.model.use_remove_padding": False,
    "actor_rollout_ref.model.enable_gradient_checkpointing": False,
    "+actor_rollout_ref.model.override_config": "{attn_implementation:eager}",
    "actor_rollout_ref.actor.strategy": "fsdp2",
    "actor_rollout_ref.actor.use_torch_compile": False,
    "actor_rollout_ref.actor.fsdp_config.use_torch_compile": False,
    "+actor_rollout_ref.actor.fsdp_config.mixed_precision": "{param_dtype:fp32,reduce_dtype:fp32,buffer_dtype:fp32}",
    "actor_rollout_ref.actor.ppo_mini_batch_size": PROMPTS // 2,
    "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu": 4,
    "actor_rollout_ref.actor.optim.lr": 1e-2,
    "actor_rollout_ref.rollout.name": "vllm",
    "actor_rollout_ref.rollout.n": SIZE,
    "actor_rollout_ref.rollout.response_length": LENGTH,
    "actor_rollout_ref.rollout.log_prob_micro_batch_size_per_gpu": PROMPTS * SIZE,
    "actor_rollout_ref.model.external_lib": "verl_recorder",
    "algorithm.adv_estimator": "grpo",
    "data.max_response_length": LENGTH,
}


def configuration(folder: Path, settings: dict[str, Any]) -> Any:
    """Return verl's own configuration with these settings."""
    import verl
    from hydra import compose, initialize_config_dir

    chosen = {"actor_rollout_ref.model.path": folder, **SETTINGS, **settings}
    with initialize_config_dir(str(Path(verl.__file__).parent / "trainer/config"), version_base=None):
        return compose("ppo_trainer", overrides=[f"{name}={value}" for name, value in chosen.items()])


class Run:
    """verl's trainer and worker in one process."""

    def __init__(self, out: Path, settings: dict[str, Any], *, tool: bool = False, nested: bool = False) -> None:
        self.tool, self.nested = tool, nested
        made = of_trl()
        self.words = made.tokenizer()
        self.folder = out / f"model{os.environ['RANK']}"
        made.model(1, self.words).save_pretrained(self.folder)
        self.words.save_pretrained(self.folder)
        importlib.import_module("cpu")
        import torch
        from transformers import AutoModelForCausalLM
        from verl.trainer.ppo.ray_trainer import RayPPOTrainer
        from verl.workers.engine.base import EngineRegistry
        from verl.workers.engine.fsdp.transformer_impl import FSDPEngineWithLMHead
        from verl.workers.engine_workers import ActorRolloutRefWorker

        if not torch.distributed.is_initialized():
            if os.environ["WORLD_SIZE"] == "1":
                place = f"file://{(out / 'store').resolve()}"
                torch.distributed.init_process_group("gloo", init_method=place, rank=0, world_size=1)
            else:
                torch.distributed.init_process_group("gloo")
            EngineRegistry.register(model_type="language_model", backend="fsdp2", device="cpu")(FSDPEngineWithLMHead)
        copied(out)  # verl imports it once per process, but it reads the variable at each run
        os.environ["GRPO_LAB_TRACE"] = str(out / "trace")
        self.config = configuration(self.folder, settings)
        self.worker = ActorRolloutRefWorker(self.config.actor_rollout_ref, role="actor")
        self.worker.init_model()
        self.trainer: Any = object.__new__(RayPPOTrainer)
        self.trainer.config, self.trainer.global_steps, self.trainer.distillation_config = self.config, 0, None
        self.trainer.actor_rollout_wg = SimpleNamespace(
            compute_log_prob=self.worker.compute_log_prob, update_actor=self._update
        )
        self.trainer.ref_in_actor = False
        self.reference = AutoModelForCausalLM.from_pretrained(self.folder, attn_implementation="eager")
        self.sampler = AutoModelForCausalLM.from_pretrained(self.folder, attn_implementation="eager")
        torch.manual_seed(3)

    def close(self) -> None:
        """End the recording.

        Raises:
            RuntimeError: the recording failed.
        """
        recording = getattr(self.worker.actor, "grpo_lab_recorder", None)
        if recording is None or recording.failure:
            raise RuntimeError(f"the recorder failed: {recording and recording.failure}")
        recording.close()

    def _update(self, data: Any) -> Any:
        """Run the worker's update on this process's part of the batch."""
        import torch
        from verl.utils import tensordict_utils as tu

        world = torch.distributed.get_world_size()
        mine = tu.chunk_tensordict(data, world)[torch.distributed.get_rank()]
        return self.worker.update_actor(unpadded(mine) if self.nested else mine)

    def step(self) -> dict[str, Any]:
        """Run one step like ``RayPPOTrainer.fit``, from sampling to the update. Return the
        metrics that verl reports.
        """
        from verl.trainer.ppo.ray_trainer import apply_kl_penalty, compute_advantage
        from verl.trainer.ppo.rollout_corr_helper import apply_bypass_mode, compute_rollout_correction_and_add_to_batch

        self.trainer.global_steps += 1
        batch, algorithm = self._sampled(), self.config.algorithm
        batch.meta_info["temperature"] = self.config.actor_rollout_ref.rollout.temperature
        batch.meta_info["global_token_num"] = batch.batch["attention_mask"].sum(-1).tolist()
        correction = algorithm.get("rollout_correction")
        bypass = bool(correction and correction.get("bypass_mode", False))
        if bypass:
            apply_bypass_mode(batch, correction, self.config.actor_rollout_ref.actor.policy_loss)
        else:
            old, _ = self.trainer._compute_old_log_prob(batch)
            old.batch.pop("entropys")
            batch = batch.union(old)
        batch.batch["ref_log_prob"] = self._scored(self.reference, batch.batch)
        batch.batch["token_level_rewards"] = batch.batch["token_level_scores"]
        if algorithm.use_kl_in_reward:
            from verl.trainer.ppo.core_algos import get_kl_controller

            batch, _ = apply_kl_penalty(batch, get_kl_controller(algorithm.kl_ctrl), algorithm.kl_penalty)
        if correction is not None and not bypass:
            batch, _ = compute_rollout_correction_and_add_to_batch(batch, correction)
        batch = compute_advantage(
            batch,
            adv_estimator=algorithm.adv_estimator,
            num_repeat=SIZE,
            config=algorithm,
            norm_adv_by_std_in_grpo=algorithm.get("norm_adv_by_std_in_grpo", True),
        )
        output = self.trainer._update_actor(batch)
        self.sampler.load_state_dict(
            {name: getattr(value, "full_tensor", lambda v=value: v)() for name, value in self._weights().items()}
        )
        return dict(output.meta_info["metrics"])

    def _weights(self) -> dict[str, Any]:
        return dict(self.worker.actor.engine.module.state_dict())

    def _sampled(self) -> Any:
        """Sample completions of this step's prompts and return them as verl's batch, scored by
        their share of digits.
        """
        import copy

        import numpy as np
        import torch
        from verl import DataProto

        first = self.trainer.global_steps
        prompts = [f"{a}+{first}=" for a in range(10 - PROMPTS, 10) for _ in range(SIZE)]
        asked = self.words(prompts, return_tensors="pt", padding=True)
        end, pad = self.words.eos_token_id, self.words.pad_token_id
        with torch.no_grad():
            whole = self.sampler.generate(
                asked.input_ids,
                attention_mask=asked.attention_mask,
                max_new_tokens=LENGTH,
                do_sample=True,
                eos_token_id=end,
                pad_token_id=pad,
                top_k=0,
            )
        width = asked.input_ids.shape[1]
        responses = torch.full((len(prompts), LENGTH), pad)
        responses[:, : whole.shape[1] - width] = whole[:, width:]
        ended = (responses == end).cumsum(1)
        there = ((ended == 0) | ((ended == 1) & (responses == end))).long()
        counted = there.clone()
        if self.tool:  # every other completion has two tokens that a tool wrote
            responses[::2, 2:4] = self.words.convert_tokens_to_ids("=")
            there[::2, :5], counted[::2, :5] = 1, 1
            counted[::2, 2:4] = 0
        mask = torch.cat([asked.attention_mask, there], 1)
        tensors = {
            "prompts": asked.input_ids,
            "responses": responses,
            "response_mask": counted,
            "input_ids": torch.cat([asked.input_ids, responses], 1),
            "attention_mask": mask,
            "position_ids": (mask.cumsum(1) - 1).clamp(min=0),
        }
        tensors["rollout_log_probs"] = self._scored(copy.deepcopy(self.sampler).bfloat16(), tensors)
        texts = self.words.batch_decode([row[keep.bool()] for row, keep in zip(responses, there, strict=True)])
        scores = torch.zeros(len(prompts), LENGTH)
        lengths = there.sum(1)
        for row, text in enumerate(texts):
            scores[row, lengths[row] - 1] = sum(c.isdigit() for c in text) / int(lengths[row])
        tensors["token_level_scores"] = scores
        return DataProto.from_dict(tensors=tensors, non_tensors={"uid": np.array(prompts, dtype=object)})

    def _scored(self, model: Any, tensors: Any) -> Any:
        """Return the log-probabilities of the completions under ``model``, (B, T), in float32."""
        import torch

        ids, width = tensors["input_ids"], tensors["prompts"].shape[1]
        temperature = self.config.actor_rollout_ref.rollout.temperature
        with torch.no_grad():
            logits = model(
                input_ids=ids, attention_mask=tensors["attention_mask"], position_ids=tensors["position_ids"]
            ).logits.float()
        logp = torch.log_softmax(logits[:, width - 1 : -1] / temperature, -1)
        return logp.gather(-1, ids[:, width:, None]).squeeze(-1)


def unpadded(data: Any) -> Any:
    """Return the batch as ``main_ppo`` gets it from TransferQueue: nested tensors, without an attention mask."""
    import torch
    from verl.workers.utils.padding import response_to_nested

    width = data["prompts"].shape[1]
    there = data["attention_mask"].bool()
    asked = [row[keep] for row, keep in zip(data["prompts"], there[:, :width], strict=True)]
    given = [row[keep] for row, keep in zip(data["responses"], there[:, width:], strict=True)]
    like = torch.nested.as_nested_tensor(given, layout=torch.jagged)
    of_response = [
        name
        for name, value in data.items()
        if torch.is_tensor(value) and not value.is_nested and value.ndim == 2 and value.shape[1] == LENGTH
    ]
    for name in of_response:
        data[name] = response_to_nested(data[name], like)
    data["prompts"] = torch.nested.as_nested_tensor(asked, layout=torch.jagged)
    del data["attention_mask"], data["max_response_len"]
    return data


def copied(out: Path) -> None:
    """Copy the recorder next to the run, as a user does, where Python finds it."""
    shutil.copy(RECORDER, out / "verl_recorder.py")
    sys.path.insert(0, str(out))


def of_trl() -> Any:
    """Import ``benchmarks/trl/tiny_run.py``, which has the same model and tokenizer."""
    return module_at(HERE.parent / "trl/tiny_run.py")


def module_at(path: Path) -> Any:
    """Import a file as a standalone module, like the recorder next to a user's script."""
    found = importlib.util.spec_from_file_location(f"{path.parent.name}_{path.stem}", path)
    assert found is not None and found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


def main() -> None:
    """Train the tiny model and record the run."""
    parser = argparse.ArgumentParser(description="A tiny verl run, recorded.")
    parser.add_argument("out", type=Path)
    parser.add_argument("--steps", type=int, default=2, help="steps of the trainer")
    parser.add_argument("--set", action="append", default=[], metavar="FIELD=VALUE", help="a setting of verl")
    parser.add_argument("--nested", action="store_true", help="batches without padding, as TransferQueue gives them")
    parser.add_argument("--tool", action="store_true", help="some tokens are a tool's, and masked")
    options = parser.parse_args()
    run = Run(options.out, dict(pair.split("=", 1) for pair in options.set), tool=options.tool, nested=options.nested)
    for _ in range(options.steps):
        print(run.step())
    run.close()


if __name__ == "__main__":
    main()
