"""Run the real trainer in every configuration, record, audit and diagnose it, and compare drawn batches. Prints a table
at the end.

    make bench-trl                                             # in a separate environment, .venv-trl
    python benchmarks/trl/bench.py [--only NAME ...] [--keep FOLDER]

The exit code is 1 if a sound run deviates or has a finding, or if a planted fault or a disease is not named.
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
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parents[1]))

from grpo_core.errors import GrpoError  # noqa: E402
from grpo_core.trainers.audit import audit  # noqa: E402 - the program lies two folders up, and is not installed here
from grpo_core.trainers.commands import preset_check  # noqa: E402
from grpo_core.trainers.health import diagnose  # noqa: E402
from grpo_core.trainers.health.grade import Grade  # noqa: E402
from grpo_core.trainers.importers.trace import Trace  # noqa: E402

faults = importlib.import_module("faults")  # next to this script


@dataclass(frozen=True, kw_only=True)
class Configuration:
    """A sound run.

    Attributes:
        settings: fields of TRL's GRPOConfig.
        steps: number of optimizer steps.
        processes: number of training processes.
    """

    settings: dict[str, Any] = field(default_factory=dict)
    steps: int = 3
    processes: int = 1


LOSSES = ("grpo", "bnpo", "dr_grpo", "dapo", "luspo", "sapo", "vespo")
TWICE = {"num_iterations": 2, "beta": 0.04}
CONFIGURATIONS: dict[str, Configuration] = {
    **{f"loss {name}": Configuration(settings={"loss_type": name, **TWICE}, steps=4) for name in LOSSES},
    "loss cispo": Configuration(settings={"loss_type": "cispo", "epsilon_high": 5.0, **TWICE}, steps=4),
    "sequence level": Configuration(settings={"importance_sampling_level": "sequence", **TWICE}, steps=4),
    "no KL": Configuration(settings={"loss_type": "grpo", "beta": 0.0}),
    "four iterations": Configuration(
        settings={"loss_type": "grpo", "num_iterations": 4, "learning_rate": 1e-3}, steps=8
    ),
    "delta": Configuration(settings={"loss_type": "grpo", "delta": 1.5, **TWICE}, steps=4),
    "entropy mask": Configuration(settings={"top_entropy_quantile": 0.5, **TWICE}, steps=4),
    "off-policy mask": Configuration(settings={"off_policy_mask_threshold": 0.01, **TWICE}, steps=4),
    "entropy bonus": Configuration(settings={"entropy_coef": 0.01}),
    "corrected KL": Configuration(settings={"loss_type": "grpo", "use_bias_correction_kl": True, **TWICE}, steps=4),
    "batch std": Configuration(settings={"scale_rewards": "batch"}),
    "no std": Configuration(settings={"scale_rewards": "none"}),
    "accumulation": Configuration(settings={"gradient_accumulation_steps": 2, "loss_type": "grpo", **TWICE}, steps=4),
    "short generations": Configuration(settings={"gradient_accumulation_steps": 4, "steps_per_generation": 2}),
    "long generations": Configuration(
        settings={"gradient_accumulation_steps": 1, "steps_per_generation": 4, "loss_type": "dapo"}, steps=8
    ),
    "truncated left out": Configuration(
        settings={"mask_truncated_completions": True, "loss_type": "dapo", **TWICE}, steps=4
    ),
    "reward weights": Configuration(settings={"reward_weights": [0.3, 2.0], "loss_type": "grpo", **TWICE}, steps=4),
    "normalised, then summed": Configuration(
        settings={"multi_objective_aggregation": "normalize_then_sum", **TWICE}, steps=4
    ),
    "sampling temperature": Configuration(settings={"temperature": 0.7, "top_p": 0.9, "top_k": 5, **TWICE}, steps=4),
    "synced reference": Configuration(
        settings={"sync_ref_model": True, "ref_model_sync_steps": 1, "beta": 0.1}, steps=4
    ),
    "adaptive entropy": Configuration(
        settings={"entropy_coef": 0.01, "use_adaptive_entropy": True, "entropy_target": 3.0}, steps=5
    ),
    "two processes, batch std": Configuration(
        settings={"scale_rewards": "batch", "loss_type": "grpo", "beta": 0.04}, processes=2
    ),
    "two processes": Configuration(settings={"loss_type": "dapo", "gradient_accumulation_steps": 2}, processes=2),
    "bfloat16": Configuration(settings={"bf16": True, **TWICE}, steps=4),
}
"""Name -> a run whose recomputed loss must equal the logged one."""


@dataclass(frozen=True, kw_only=True)
class Row:
    """One row of the table: the test, whether its result is as expected, and what was observed."""

    kind: str
    name: str
    passed: bool
    seen: str


def sound(name: str, folder: Path) -> Row:
    """Test a run that must agree and have no finding."""
    chosen = CONFIGURATIONS[name]
    if chosen.processes > 1:
        _apart(folder, chosen)
    else:
        _train(folder, chosen.steps, chosen.settings)
    run = Trace(folder / "trace")
    result = audit(run)
    found = [finding for finding in diagnose(run).findings if finding.grade is not Grade.NOTICE]
    worst = result.worst("loss")
    seen = (
        "nothing compared"
        if worst is None
        else f"loss to {worst.difference:.1e} of {worst.ours:.3g}, {result.compared} numbers"
    )
    if result.first is not None:
        step, number = result.first
        seen += f"; departs at step {step.label}: {number.what} {number.ours:.9g} for {number.theirs:.9g}"
    seen += "".join(f"; {finding.check}" for finding in found)
    return Row(kind="sound", name=name, passed=result.agrees and not found, seen=seen)


def fault(name: str, folder: Path) -> Row:
    """Test a run with a planted fault. The audit must name its cause first, alone or as one of a class, and no other
    cause.
    """
    planted = {**faults.FAULTS, **faults.APART}[name]
    _train(folder, planted.steps, dict(planted.settings), fault=name)
    result = audit(Trace(folder / "trace"))
    if not result.causes:
        seen = result.remainder or "agrees"
        return Row(kind="fault", name=name, passed=not planted.causes and not result.agrees, seen=seen)
    named = [cause_name for cause in result.causes for cause_name in cause.names]
    first = result.causes[0]
    right = set(planted.causes) & set(first.names) and set(planted.causes) <= set(named)
    wrong = [c.names for c in result.causes if c.grade == "named" and not set(c.names) & set(planted.causes)]
    seen = "; ".join(f"{cause.grade}: {' or '.join(cause.sentences)} {cause.when}" for cause in result.causes)
    passed = (
        (bool(right) or not planted.causes) and not wrong and (planted.since is None or first.since == planted.since)
    )
    return Row(kind="fault", name=name, passed=passed, seen=seen)


def disease(name: str, folder: Path) -> Row:
    """Test a run with unwise settings, which the diagnosis must name."""
    table = importlib.import_module("diseases").DISEASES
    chosen = table[name]
    _train(folder, chosen.steps, chosen.settings, rewards=chosen.rewards, dropout=chosen.dropout)
    found = [finding.check for finding in diagnose(Trace(folder / "trace")).findings]
    return Row(kind="disease", name=name, passed=chosen.finding in found, seen=", ".join(found) or "no finding")


def sick(name: str, folder: Path) -> Row:
    """Test a sick training run. The expected finding must be named first."""
    chosen = importlib.import_module("sick").SICK[name]
    _train(folder, chosen.steps, chosen.settings, rewards=chosen.rewards, dropout=chosen.dropout)
    found = diagnose(Trace(folder / "trace")).findings
    seen = ", ".join(f"{finding.check} ({finding.grade})" for finding in found) or "no finding"
    return Row(kind="sick", name=name, passed=[f.check for f in found][:1] == [chosen.finding], seen=seen)


def _train(folder: Path, steps: int, settings: dict[str, Any], **more: Any) -> None:
    tiny_run = importlib.import_module("tiny_run")
    made = tiny_run.trainer(folder, steps=steps, settings=settings, **more)
    recording = tiny_run.module_at(tiny_run.RECORDER).record(made, folder / "trace")
    try:
        made.train()
    except (RuntimeError, ValueError) as error:  # a model of NaNs cannot be sampled from
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
    recording.close()
    if recording.failure:
        raise GrpoError(f"the recorder failed: {recording.failure}")


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
        "--steps",
        str(chosen.steps),
    ]
    command += [word for name, value in chosen.settings.items() for word in ("--set", f"{name}={value}")]
    done = subprocess.run(command, check=False, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if "Error" in line or "signal" in line.lower()]
        raise GrpoError(f"torch.distributed.run ended with {done.returncode}: {' | '.join(lines[-3:])}")


def of_folder(kind: str, name: str, folder: Path) -> Row:
    """Test one case of ``models.py`` (a model from a folder here and in TRL), ``properties.py`` or ``odd.py``."""
    cases, drawn, odd = (importlib.import_module(each) for each in ("models", "properties", "odd"))
    passed, seen = {
        "same loss": cases.same_loss,
        "script": cases.runs,
        "property": drawn.holds,
        "odd": odd.goes_on,
        "odd process": odd.ends,
    }[kind](name, folder)
    return Row(kind=kind, name=name, passed=passed, seen=seen)


def presets(name: str, folder: Path) -> Row:
    """Compare the presets with the defaults of this TRL, and of verl's wheel."""
    sys.path += [str(root) for root in importlib.import_module("others").unpacked()]
    with contextlib.redirect_stdout(io.StringIO()) as said:
        status = preset_check.check(argparse.Namespace())
    return Row(kind="presets", name=name, passed=not status, seen=" ".join(said.getvalue().split()))


KINDS: dict[str, tuple[Callable[[str, Path], Row], Any]] = {
    "sound": (sound, CONFIGURATIONS),
    "fault": (fault, faults.FAULTS),
    "fault apart": (fault, faults.APART),
    "disease": (disease, importlib.import_module("diseases").DISEASES),
    "sick": (sick, importlib.import_module("sick").SICK),
    "same loss": (partial(of_folder, "same loss"), importlib.import_module("models").LOSSES),
    "script": (partial(of_folder, "script"), importlib.import_module("models").SCRIPTS),
    "property": (partial(of_folder, "property"), importlib.import_module("properties").PROPERTIES),
    "presets": (presets, ("defaults",)),
    "odd": (partial(of_folder, "odd"), importlib.import_module("odd").ODD),
    "odd process": (partial(of_folder, "odd process"), importlib.import_module("odd").PROCESSES),
}
"""Kind of run -> (function that tests a run of this kind, table of the runs)."""


def rows(folder: Path, only: list[str]) -> Iterator[Row]:
    """Yield one row per run, as soon as it is done."""
    for kind, (measure, table) in KINDS.items():
        for name in table:
            if only and name not in only and kind not in only:
                continue
            home = folder / f"{kind} {name}".replace(" ", "_")
            try:
                yield measure(name, home)
            except Exception as error:  # a run that fails is one row of the table, the others continue
                text = " ".join(str(error).split())[:200]
                yield Row(kind=kind, name=name, passed=False, seen=f"{type(error).__name__}: {text}")


def main() -> None:
    """Run the tests and print the table."""
    parser = argparse.ArgumentParser(description="Every configuration, fault and disease of tiny TRL runs.")
    parser.add_argument("--only", nargs="*", default=[], metavar="NAME", help="names or kinds of runs")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="leave the runs there")
    options = parser.parse_args()
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    with tempfile.TemporaryDirectory() as temporary:
        done = list(rows(options.keep or Path(temporary), options.only))
    print()
    for row in done:
        print(f"{'ok' if row.passed else 'NOT':4}{row.kind:10}{row.name:26}{row.seen}")
    passed = sum(row.passed for row in done)
    print(f"{passed} of {len(done)} as they must be.")
    sys.exit(passed < len(done))


if __name__ == "__main__":
    main()
