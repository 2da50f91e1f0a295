"""``presets --check`` says in which presets an installed TRL or verl has other defaults."""

from __future__ import annotations

from importlib import invalidate_caches
from pathlib import Path

import pytest

from grpo_core.commands.cli import main

pytestmark = pytest.mark.needs_part("trainers")

TRL = {
    "beta": "0.0", "loss_type": '"dapo"', "scale_rewards": '"group"', "importance_sampling_level": '"token"',
    "epsilon": "0.2", "epsilon_high": "None", "delta": "None", "use_bias_correction_kl": "True",
    "sapo_temperature_pos": "1.0", "sapo_temperature_neg": "1.05", "vespo_k_pos": "2.0", "vespo_lambda_pos": "3.0",
    "vespo_k_neg": "3.0", "vespo_lambda_neg": "2.0", "max_completion_length": "512",
    "vllm_importance_sampling_correction": "True", "vllm_importance_sampling_mode": '"sequence_mask"',
    "vllm_importance_sampling_clip_max": "3.0", "vllm_importance_sampling_clip_min": "None",
}  # fmt: skip # table
"""Defaults of TRL 1.16's ``GRPOConfig``, as its source has them."""
VERL = """# the actor
clip_ratio: 0.2
clip_ratio_low: 0.2
clip_ratio_high: 0.2
tau_pos: 1.0
tau_neg: 1.05
policy_loss:
  loss_mode: "vanilla"
clip_ratio_c: 3.0
loss_agg_mode: token-mean
loss_scale_factor: null
entropy_coeff: 0
use_kl_loss: false
kl_loss_coef: 0.001
kl_loss_type: low_var_kl
"""
"""Lines of verl 0.9.1's ``actor.yaml``."""


@pytest.fixture
def libraries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the files of TRL and verl in which their defaults are."""
    for folder in ("trl/trainer", "verl/trainer/config/actor"):
        (tmp_path / folder).mkdir(parents=True)
    for package in ("trl", "verl"):
        (tmp_path / package / "__init__.py").write_text("raise RuntimeError('it need not be imported')")
    (tmp_path / "verl/trainer/config/actor/actor.yaml").write_text(VERL)
    (tmp_path / "verl/trainer/config/ppo_trainer.yaml").write_text("  norm_adv_by_std_in_grpo: True\n")
    write(tmp_path, {})
    monkeypatch.syspath_prepend(str(tmp_path))
    invalidate_caches()
    return tmp_path


def write(libraries: Path, changes: dict[str, str]) -> None:
    lines = [f"    {name}: object = field(default={value}, metadata={{}})" for name, value in (TRL | changes).items()]
    (libraries / "trl/trainer/grpo_config.py").write_text("\n".join(["class GRPOConfig(Base):", *lines, ""]))


def test_the_defaults_that_the_presets_were_made_from_agree(
    libraries: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["presets", "--check"]) == 0
    first, second = capsys.readouterr().out.splitlines()
    assert first.endswith("GRPO (TRL 1.16 defaults), GRPO (TRL 1.16 with vLLM), BNPO, SAPO, VESPO.")
    assert second.endswith("its defaults are those of the presets GRPO (verl 0.9 defaults).")


@pytest.mark.parametrize(
    ("changes", "drifted"),
    [
        ({"epsilon_high": "0.28"}, "GRPO (TRL 1.16 defaults): clip_high is 0.2, there 0.28."),
        ({"loss_type": '"grpo"'}, "GRPO (TRL 1.16 defaults): reduction is token, there sequence."),
        ({"use_bias_correction_kl": "False"}, "BNPO: kl_importance is True, there False."),
        ({"vespo_k_neg": "4.0"}, "VESPO: vespo_k_neg is 3.0, there 4.0."),
        (
            {"vllm_importance_sampling_mode": '"token_truncate"'},
            "GRPO (TRL 1.16 with vLLM): importance_level is sequence_sum, there token.",
        ),
        ({"vllm_importance_sampling_correction": "False"}, "with vLLM): importance_cap is 3.0, there None."),
        ({"loss_type": '"newer"'}, "its defaults cannot be read (RunFileError: The loss type “newer” is unknown"),
        ({"beta": "low()"}, "its defaults cannot be read (KeyError: 'beta')."),
    ],
)
def test_a_default_that_has_changed_is_named(
    libraries: Path, capsys: pytest.CaptureFixture[str], changes: dict[str, str], drifted: str
) -> None:
    write(libraries, changes)
    assert main(["presets", "--check"]) == 2
    assert drifted in capsys.readouterr().out


def test_a_change_in_verl_is_named(libraries: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = libraries / "verl/trainer/config/actor/actor.yaml"
    path.write_text(VERL.replace("clip_ratio_c: 3.0", "clip_ratio_c: 10.0"))
    assert main(["presets", "--check"]) == 2
    assert "GRPO (verl 0.9 defaults): dual_clip is 3.0, there 10.0." in capsys.readouterr().out


def test_without_the_libraries_nothing_is_compared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.path", [str(tmp_path)])
    invalidate_caches()
    assert main(["presets", "--check"]) == 0
    assert capsys.readouterr().out == "trl is not installed.\nverl is not installed.\n"
