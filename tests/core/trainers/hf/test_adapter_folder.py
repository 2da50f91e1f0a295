"""A folder with an adapter: training continues, its reference is a frozen copy, and a malicious one is refused."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from grpo_core.config import Settings
from grpo_core.errors import SettingsError
from grpo_core.trainers.hf.folder import look, vocabulary
from grpo_core.trainers.hf.folder_policy import FolderPolicy
from grpo_core.trainers.hf.learner import FolderLearner
from grpo_core.trainers.hf.loading import libraries, load
from grpo_core.trainers.hf.memory import need
from grpo_core.trainers.hf.trl_script import script
from tests.core.trainers.hf.test_policy import plain_logp, same
from tests.core.trainers.hf.tiny import KINDS, small

pytestmark = pytest.mark.filterwarnings("ignore")  # peft's own, of what transformers will change one day
LAYERS = {"llama": ["q_proj", "v_proj"], "qwen2": "all-linear", "gpt2": ["c_attn", "mlp.c_proj"]}
"""Kind of model -> the layers that its saved adapter applies to."""


def adapter(base: Path, folder: Path, layers: Any, **more: Any) -> Path:
    """Save an adapter that changes the model's output, as peft does."""
    transformers, peft = libraries()
    model = transformers.AutoModelForCausalLM.from_pretrained(base)
    torch.manual_seed(1)
    config = peft.LoraConfig(r=3, lora_alpha=6, target_modules=layers, task_type="CAUSAL_LM", **more)
    adapted = peft.get_peft_model(model, config)
    with torch.no_grad():
        for name, weight in adapted.named_parameters():
            if "lora_B" in name:
                weight.normal_(0.0, 0.5)
    adapted.save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def trained(folders: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Kind of model -> a folder with an adapter for it, next to the model's folder."""
    home = tmp_path_factory.mktemp("adapters")
    for kind in KINDS:
        shutil.copytree(folders[kind], home / kind)
    return {kind: adapter(home / kind, home / f"{kind}-adapter", LAYERS[kind]) for kind in KINDS}


def of(folder: Path, **changes: Any) -> Settings:
    """Return small settings with the rank and α of the adapter in ``folder``."""
    files = look(folder)
    assert files.adapter is not None
    base = {"model__adapter_rank": files.adapter.rank, "model__adapter_alpha": files.adapter.alpha}
    return small(folder, **{**base, **changes})


@pytest.mark.quick_cases("llama-kept", "gpt2-0")
@pytest.mark.parametrize("rank", ["kept", 0])
@pytest.mark.parametrize("kind", KINDS)
def test_an_adapter_is_computed_as_peft_computes_it_and_the_reference_is_a_frozen_copy(
    kind: str, rank: Any, trained: dict[str, Path]
) -> None:
    changes = {} if rank == "kept" else {"model__adapter_rank": 0}
    settings = of(trained[kind], model__watch_reference=True, optimizer__learning_rate=0.05, **changes)
    going = FolderLearner(settings)
    first, second = next(going), next(going)
    transformers, peft = libraries()
    plain = transformers.AutoModelForCausalLM.from_pretrained(trained[kind].parent / kind)
    theirs = peft.PeftModel.from_pretrained(plain, trained[kind]).eval()
    with torch.no_grad():
        for step in (first, second):
            assert step.ref_logp is not None
            assert np.abs(step.ref_logp - plain_logp(theirs, step).numpy()).max() < 1e-4
    assert first.ref_logp is not None and second.ref_logp is not None
    assert np.abs(first.old_logp - first.ref_logp).max() < 1e-4
    assert np.abs(second.old_logp - second.ref_logp).max() > 1e-3, "the policy has moved, the reference has not"


@pytest.mark.parametrize("kind", KINDS)
def test_what_an_adapter_folder_is_is_said_before_it_is_loaded(kind: str, trained: dict[str, Path]) -> None:
    files, base = look(trained[kind]), look(trained[kind].parent / kind)
    assert files.adapter is not None
    assert "an adapter of rank 3 for" in files.description
    assert vocabulary(files) == vocabulary(base)
    assert files.digest != base.digest
    assert (files.settings.model.adapter_rank, files.settings.model.adapter_alpha) == (3, 6.0)
    settings = of(trained[kind], model__watch_reference=True)
    assert FolderPolicy(settings).trained_parameters == need(files, settings).trained
    assert need(files, settings).reference > 0


def test_a_run_of_an_adapter_folder_goes_on_from_its_snapshot(trained: dict[str, Path]) -> None:
    settings = of(trained["llama"], model__snapshot_every=1, optimizer__learning_rate=1e-2)
    going = FolderLearner(settings)
    step = next(going)
    again = FolderLearner(settings, history=[step])
    assert same(next(again), next(going))


def test_another_rank_than_that_of_the_adapter_is_refused(trained: dict[str, Path]) -> None:
    with pytest.raises(SettingsError, match=r"an adapter of rank 3 and α 6; use both"):
        FolderPolicy(of(trained["llama"], model__adapter_rank=8))


def test_no_script_is_written_for_an_adapter_folder(trained: dict[str, Path]) -> None:
    with pytest.raises(SettingsError, match="starts with a new adapter"):
        script(of(trained["llama"]))


@pytest.mark.parametrize("kind", KINDS)
def test_a_model_beside_an_adapter_is_loaded_plain(kind: str, trained: dict[str, Path], tmp_path: Path) -> None:
    """transformers used to find the adapter, which moved the plain model's logits by 0.38."""
    alone, both = look(trained[kind]).whole, tmp_path / "both"
    shutil.copytree(alone, both)
    for file in ("adapter_config.json", "adapter_model.safetensors"):
        shutil.copy(trained[kind] / file, both / file)
    mine = adapter(alone, tmp_path / "mine", LAYERS[kind])
    config = json.loads((mine / "adapter_config.json").read_text())
    (mine / "adapter_config.json").write_text(json.dumps({**config, "base_model_name_or_path": str(both)}))
    files = look(mine)
    assert files.whole == both
    tokens = torch.tensor([[1, 2, 3, 4]])
    with torch.no_grad():
        plain = load(look(alone), torch.device("cpu"), "float32").model(tokens).logits
        beside = load(files, torch.device("cpu"), "float32").model(tokens).logits
        transformers, _ = libraries()
        moved = transformers.AutoModelForCausalLM.from_pretrained(both).eval()(tokens).logits
    assert torch.equal(plain, beside)
    assert not torch.allclose(plain, moved, atol=1e-3), "without the guard transformers applies it"


def test_a_scale_by_the_root_of_the_rank_is_followed(folders: dict[str, Path], tmp_path: Path) -> None:
    shutil.copytree(folders["llama"], tmp_path / "llama")
    found = look(adapter(tmp_path / "llama", tmp_path / "adapter", ["q_proj"], use_rslora=True)).adapter
    assert found is not None
    assert found.alpha / found.rank == pytest.approx(6 / 3**0.5)


def config(**values: Any) -> Callable[[Path], None]:
    """Return a function that sets fields of the adapter's configuration."""

    def change(folder: Path) -> None:
        path = folder / "adapter_config.json"
        path.write_text(json.dumps({**json.loads(path.read_text("utf-8")), **values}), encoding="utf-8")

    return change


def tensors(change: Callable[[dict[str, torch.Tensor]], Any]) -> Callable[[Path], None]:
    """Return a function that changes the adapter's tensors."""

    def changed(folder: Path) -> None:
        held = load_file(folder / "adapter_model.safetensors")
        change(held)
        save_file({name: table.contiguous() for name, table in held.items()}, folder / "adapter_model.safetensors")

    return changed


Q = "base_model.model.model.layers.0.self_attn.q_proj.lora_"
X = Q.replace("q_proj", "x")
HOSTILE: dict[str, tuple[Callable[[Path], Any], str]] = {
    "no JSON": (lambda f: (f / "adapter_config.json").write_text("{"), "empty or not JSON"),
    "a list": (lambda f: (f / "adapter_config.json").write_text("[]"), "empty or not JSON"),
    "deep JSON": (lambda f: (f / "adapter_config.json").write_text("[" * 100_000), "empty or not JSON"),
    "another kind": (config(peft_type="IA3"), "only LORA can be read"),
    "a module to import": (config(megatron_config={"x": 1}), "asks for megatron_config"),
    "whole layers besides": (config(modules_to_save=["lm_head"]), "asks for modules_to_save"),
    "a rank by pattern": (config(rank_pattern={"(a+)+$": 2}), "asks for rank_pattern"),
    "changed base weights": (config(init_lora_weights="pissa"), "asks for init_lora_weights = pissa"),
    "dora": (config(use_dora=True), "asks for use_dora"),
    "biases": (config(bias="all"), "asks for bias"),
    "an unknown field": (config(hooks="os.system"), "asks for hooks"),
    "a huge rank": (config(r=10**9), "not give a usable r"),
    "a rank that is text": (config(r="8"), "not give a usable r"),
    "a rank that is true": (config(r=True), "not give a usable r"),
    "α that is no number": (config(lora_alpha=float("nan")), "not give a usable r and lora_alpha"),
    "another rank": (config(r=4), "does not belong to rank 4"),
    "a model in the network": (config(base_model_name_or_path="//host/share/none"), "the folder of its model, none,"),
    "a model far away": (config(base_model_name_or_path="../../etc"), "the folder of its model, etc,"),
    "a parent": (config(base_model_name_or_path=".."), "put the folder of its model"),
    "no name": (config(base_model_name_or_path=None), "which it does not name"),
    "no tensors": (lambda f: (f / "adapter_model.safetensors").unlink(), "does not contain adapter_model.safetensors"),
    "0 bytes": (lambda f: (f / "adapter_model.safetensors").write_bytes(b""), "0 bytes"),
    "half a pair": (tensors(lambda held: held.pop(f"{Q}A.weight")), "one half of"),
    "another layer": (
        tensors(lambda held: held.update({"x.lora_A.weight": torch.zeros(3, 4)})),
        "does not belong to rank",
    ),
    "another model": (tensors(lambda held: held.update({f"{Q}A.weight": torch.zeros(3, 8)})), "does not fit the model"),
    "a layer that is not there": (
        tensors(lambda held: held.update({f"{X}A.weight": torch.zeros(3, 8), f"{X}B.weight": torch.zeros(8, 3)})),
        "does not fit the model",
    ),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_adapter_is_refused_in_a_sentence_before_anything_is_loaded(
    name: str, trained: dict[str, Path], tmp_path: Path
) -> None:
    shutil.copytree(trained["llama"].parent / "llama", tmp_path / "llama")
    folder = tmp_path / "adapter"
    shutil.copytree(trained["llama"], folder)
    spoil, sentence = HOSTILE[name]
    spoil(folder)
    with pytest.raises(SettingsError, match=sentence):
        look(folder)
