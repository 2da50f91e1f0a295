"""verl's own actor under many settings. Its losses are recomputed, or a message says why they cannot be.

    make bench-verl ARGS='--only gspo "dual clip"'

Needs the packages of ``requirements.txt`` in this folder. Prints a row per run; the exit code is 1 if a result is not
as expected.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import io
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parents[1])]

from grpo_core import recompute  # noqa: E402
from grpo_core.errors import GrpoError  # noqa: E402
from grpo_core.record import Step  # noqa: E402
from grpo_core.trainers.audit import audit  # noqa: E402
from grpo_core.trainers.importers.trace import Trace  # noqa: E402

ACTOR, CORRECTION = "actor_rollout_ref.actor.", "algorithm.rollout_correction."
MODE, AGGREGATION = f"{ACTOR}policy_loss.loss_mode", f"{ACTOR}loss_agg_mode"
WITH_KL = {f"{ACTOR}use_kl_loss": True, f"{ACTOR}kl_loss_coef": 0.1}
FAR = {f"{ACTOR}ppo_epochs": 4, f"{ACTOR}optim.lr": 0.05}


@dataclass(frozen=True, kw_only=True)
class Configuration:
    """A run of verl.

    Attributes:
        settings: settings of verl, by their names.
        tool: whether some tokens are a tool's, and masked.
        nested: whether batches have no padding, as ``main_ppo`` gets them from TransferQueue.
        processes: number of training processes.
        acts: whether the settings have an effect on an update, without which agreement is meaningless.
        refused: part of the message that says why its losses cannot be recomputed; empty if they must agree.
    """

    settings: dict[str, object] = field(default_factory=dict)
    tool: bool = False
    nested: bool = False
    processes: int = 1
    acts: Callable[[Step], bool] = lambda step: True
    refused: str = ""


def _weighs(step: Step) -> bool:
    """Return whether the importance weights are not all the same."""
    assert step.gate is not None
    weights = step.gate[0][step.mask]
    return bool(np.ptp(weights) > 0)


def _rejects(step: Step) -> bool:
    """Return whether there are tokens that do not count."""
    return step.present is not None


def _cuts(step: Step) -> bool:
    """Return whether a token with a negative advantage has a ratio above the dual clip."""
    ratio, cap = np.exp(step.logp[: step.passes] - step.old_logp), step.settings.objective.dual_clip
    advantage = recompute.advantage(step)
    with np.errstate(invalid="ignore"):
        return bool(((ratio > cap) & step.mask & (advantage < 0)[:, None]).any())


def _caps(step: Step) -> bool:
    """Return whether a token's ratio is above CISPO's cap."""
    ratio = np.exp(step.logp[: step.passes] - step.old_logp)
    with np.errstate(invalid="ignore"):
        return bool(((ratio > step.settings.objective.clip_high) & step.mask).any())


CONFIGURATIONS = {
    "token-mean": Configuration(),
    "token-sum": Configuration(settings={AGGREGATION: "token-sum"}),
    "seq-mean-token-sum": Configuration(settings={AGGREGATION: "seq-mean-token-sum"}),
    "seq-mean-token-mean": Configuration(settings={AGGREGATION: "seq-mean-token-mean"}, tool=True),
    "seq-mean-token-sum-norm": Configuration(settings={AGGREGATION: "seq-mean-token-sum-norm"}),
    "constant length": Configuration(
        settings={
            AGGREGATION: "seq-mean-token-sum-norm",
            f"{ACTOR}loss_scale_factor": 64,
            "algorithm.norm_adv_by_std_in_grpo": False,
        }
    ),
    "dual clip": Configuration(
        settings={f"{ACTOR}clip_ratio_c": 1.3, f"{ACTOR}clip_ratio_high": 0.28, **FAR}, acts=_cuts
    ),
    "shuffled": Configuration(settings={f"{ACTOR}shuffle": True, f"{ACTOR}ppo_epochs": 2}, tool=True),
    "dynamic batch": Configuration(
        settings={
            f"{ACTOR}use_dynamic_bsz": True,
            f"{ACTOR}ppo_max_token_len_per_gpu": 40,
            "actor_rollout_ref.rollout.log_prob_use_dynamic_bsz": True,
        }
    ),
    "k1": Configuration(settings={**WITH_KL, f"{ACTOR}kl_loss_type": "kl"}),
    "k2": Configuration(settings={**WITH_KL, f"{ACTOR}kl_loss_type": "mse"}),
    "k3 and entropy": Configuration(settings={**WITH_KL, f"{ACTOR}entropy_coeff": 0.02}, tool=True),
    "KL in reward": Configuration(settings={"algorithm.use_kl_in_reward": True, "algorithm.kl_ctrl.kl_coef": 0.5}),
    "rloo": Configuration(settings={"algorithm.adv_estimator": "rloo"}),
    "reinforce++": Configuration(settings={"algorithm.adv_estimator": "reinforce_plus_plus"}),
    "gspo": Configuration(
        settings={
            MODE: "gspo",
            AGGREGATION: "seq-mean-token-mean",
            f"{ACTOR}clip_ratio_low": 3e-4,
            f"{ACTOR}clip_ratio_high": 4e-4,
        }
    ),
    "sapo": Configuration(settings={MODE: "sapo", AGGREGATION: "seq-mean-token-mean"}),
    "cispo": Configuration(
        settings={MODE: "cispo", f"{ACTOR}clip_ratio_low": 1, f"{ACTOR}clip_ratio_high": 0.2, **FAR}, acts=_caps
    ),
    "gpg": Configuration(settings={MODE: "gpg"}),
    "weights of tokens": Configuration(
        settings={f"{CORRECTION}rollout_is": "token", f"{CORRECTION}rollout_is_threshold": 1.005},
        tool=True,
        acts=_weighs,
    ),
    "weights of completions": Configuration(
        settings={f"{CORRECTION}rollout_is": "sequence", f"{CORRECTION}rollout_is_batch_normalize": True}, acts=_weighs
    ),
    "rejected": Configuration(
        settings={f"{CORRECTION}rollout_rs": "token_k1", f"{CORRECTION}rollout_rs_threshold": "'0.999_1.001'"},
        acts=_rejects,
    ),
    "bypass": Configuration(settings={f"{CORRECTION}bypass_mode": True}),
    "bypass reinforce": Configuration(
        settings={
            f"{CORRECTION}bypass_mode": True,
            f"{CORRECTION}loss_type": "reinforce",
            f"{CORRECTION}rollout_is": "token",
            f"{CORRECTION}rollout_is_threshold": 1.3,
            **FAR,
        },
        acts=_caps,
    ),
    "nested": Configuration(settings={**WITH_KL, f"{CORRECTION}rollout_is": "token"}, tool=True, nested=True),
    "nested width": Configuration(
        settings={AGGREGATION: "seq-mean-token-sum-norm", f"{ACTOR}ppo_micro_batch_size_per_gpu": 1}, nested=True
    ),
    "two processes": Configuration(settings={**WITH_KL, f"{ACTOR}ppo_micro_batch_size_per_gpu": 2}, processes=2),
    "kl_cov": Configuration(settings={MODE: "kl_cov"}, refused="does not have this surrogate"),
    "k3+": Configuration(settings={**WITH_KL, f"{ACTOR}kl_loss_type": "k3+"}, refused="kl_loss_type"),
    "cispo from below": Configuration(settings={MODE: "cispo"}, refused="only from above"),
    "gspo with weights of tokens": Configuration(
        settings={MODE: "gspo", f"{CORRECTION}rollout_is": "token"}, refused="its own importance weight"
    ),
}
"""Name -> a run whose recomputed loss must equal verl's, or for which a message must say why it is not recomputed."""


def examined(name: str, folder: Path) -> tuple[bool, str]:
    """Return whether the result of a run is as expected, and what the audit says about it."""
    chosen = CONFIGURATIONS[name]
    if chosen.processes > 1:
        _apart(folder, chosen)
    else:
        with contextlib.redirect_stdout(io.StringIO()):
            run = importlib.import_module("tiny_run").Run(
                folder, dict(chosen.settings), tool=chosen.tool, nested=chosen.nested
            )
            for _ in range(2):
                run.step()
            run.close()
    trace = Trace(folder / "trace")
    result = audit(trace)
    if chosen.refused:
        skipped = {step.skipped for step in result.steps}
        return len(result.steps) == 2 and all(chosen.refused in each for each in skipped), " ".join(skipped)
    worst = result.worst("loss")
    said = "".join(
        f"; {sentence}" for sentence in (*result.explanations, *result.suspicions, result.remainder) if sentence
    )
    said += "".join(f"; {step.skipped}" for step in result.steps if step.skipped)
    if worst is None:
        return False, f"nothing compared{said}"
    numbers = f"loss to {worst.difference:.1e} of {worst.ours:.3g}, {result.compared} numbers"
    if not any(chosen.acts(trace.step(position)) for position in range(1, len(trace) + 1)):
        said += "; what was to be seen did not happen"
    return result.agrees and not said, numbers + said


def _apart(folder: Path, chosen: Configuration) -> None:
    """Train the run on several processes of this machine."""
    command = [
        sys.executable,
        "-m",
        "torch.distributed.run",
        "--standalone",
        f"--nproc-per-node={chosen.processes}",
        str(HERE / "tiny_run.py"),
        str(folder),
    ]
    command += [word for name, value in chosen.settings.items() for word in ("--set", f"{name}={value}")]
    done = subprocess.run(command, check=False, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if "Error" in line or "signal" in line.lower()]
        raise GrpoError(f"torch.distributed.run ended with {done.returncode}: {' | '.join(lines[-3:])}")


def main() -> None:
    """Run the tests and print the table."""
    parser = argparse.ArgumentParser(description="Tiny runs of verl under many settings, audited.")
    parser.add_argument("--only", nargs="*", default=[], metavar="NAME", help="names of runs, or odd: those of odd.py")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="leave the runs there")
    options = parser.parse_args()
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    rows = []
    with tempfile.TemporaryDirectory() as temporary:
        odd = importlib.import_module("odd")
        names = [*CONFIGURATIONS, *odd.ODD] if not options.only else options.only
        if "odd" in names:
            names = list(odd.ODD)
        for name in names:
            home = (options.keep or Path(temporary)) / name.replace(" ", "_")
            try:
                passed, said = odd.goes_on(name, home) if name in odd.ODD else examined(name, home)
            except Exception as error:  # a run that fails is one row of the table, the others continue
                passed, said = False, f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
            rows.append((passed, name, said))
            print(f"{'ok' if passed else 'NOT':4}{name:28}{said}", flush=True)
    print(f"{sum(passed for passed, _, _ in rows)} of {len(rows)} as they must be.")
    sys.exit(not all(passed for passed, _, _ in rows))


if __name__ == "__main__":
    main()
