"""Compare the digits of races, sweeps and recorded runs of this source tree with those of another one.

    git worktree add --detach ../before v0.3.1
    python -m tools.digits ../before [--experiments 400] [--runs 106] [--seed 1]

Commands are drawn by a seed from settings and presets that both trees know. Each tree runs them in a process of its
own, by its command line, and the CSV files that it writes are compared byte for byte. This tree also verifies and
exports the run files of the other. A command that both trees refuse is drawn again.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
VALUES = {
    "objective.baseline": ("group_mean", "leave_one_out", "batch_mean", "none"),
    "objective.std": ("sample", "population", "batch", "none"),
    "objective.std_epsilon": ("0.0001", "0", "0.01"),
    "objective.level": ("token", "sequence", "sequence_sum"),
    "objective.surrogate": ("clip", "cispo", "sapo", "vespo", "gmpo", "log_prob"),
    "objective.clip_low": ("0.1", "0.2", "0.3"),
    "objective.clip_high": ("0.2", "0.28", "5"),
    "objective.dual_clip": ("2", "3"),
    "objective.log_ratio_limit": ("1", "20"),
    "objective.importance_cap": ("2", "5"),
    "objective.beta": ("0", "0.01", "0.04", "0.2", "1"),
    "objective.kl": ("k1", "k2", "k3", "exact"),
    "objective.kl_importance": ("true", "false"),
    "objective.kl_in": ("loss", "reward"),
    "objective.entropy_bonus": ("0", "0.01"),
    "objective.reduction": ("sequence", "token", "sequence_sum"),
    "learner.group_size": ("2", "4", "8", "16"),
    "learner.mu": ("1", "2", "4"),
    "learner.temperature": ("0.7", "1", "1.3"),
    "learner.staleness": ("0", "1", "3"),
    "learner.resample_dead": ("true", "false"),
    "optimizer.kind": ("sgd", "adam"),
    "optimizer.learning_rate": ("0.03", "0.1", "0.3", "1"),
    "optimizer.weight_decay": ("0", "0.01"),
    "optimizer.max_grad_norm": ("0.1", "1"),
    "optimizer.step_length": ("0.05", "0.1"),
    "task.landscape": ("single_peak", "double_peak", "linear", "length", "chain"),
    "task.actions": ("4", "10", "16"),
    "task.levels": ("0", "0,0.5", "0,-1,2"),
    "task.bias": ("0", "2"),
    "task.max_length": ("3", "8"),
}
"""Values that a draw gives to a setting. The newest tree may know more settings."""
ONLY_BANDIT = ("learner.staleness", "optimizer.step_length", "optimizer.learning_rate", "learner.group_size")
"""Settings that are left as they are in runs of the language model, besides those of the task."""
LISTS = ("task.levels", "task.landscape")
"""Settings that a sweep does not vary."""


def main() -> int:
    """Run the drawn commands in both trees, print what differs, and return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tools.digits", description="Compare the digits of two trees.")
    parser.add_argument("other", type=Path, help="the root of the other source tree")
    parser.add_argument("--experiments", type=int, default=400, help="number of races and sweeps (default 400)")
    parser.add_argument("--runs", type=int, default=106, help="number of recorded runs (default 106)")
    parser.add_argument("--seed", type=int, default=1, help="seed of the draw (default 1)")
    parser.add_argument("--into", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.into:
        return _run_all(options.other, options.into)
    draw = random.Random(options.seed)
    names = _presets(options.other) & _presets(ROOT)
    wanted = (
        ("races and sweeps", options.experiments, (_race, _race, _sweep)),
        ("recorded runs", options.runs, (_bandit, _bandit, _language)),
    )
    differing = 0
    for name, number, kinds in wanted:
        equal = refused = 0
        while equal + differing < number:
            commands = [draw.choice(kinds)(draw, sorted(names)) for _ in range(number - equal - differing)]
            for arguments, same in _compared(options.other, commands):
                refused += same is None
                equal += same is True
                if same is False:
                    differing += 1
                    print("differs:", " ".join(arguments), flush=True)
        print(f"{name}: {equal} equal, {differing} different; {refused} were refused by both trees", flush=True)
        if differing:
            return 1
    return 0


def _presets(tree: Path) -> set[str]:
    """Return the names of presets that a tree has."""
    command = [sys.executable, "-m", "grpo_core", "presets"]
    printed = subprocess.run(command, cwd=tree, capture_output=True, text=True, check=True, env=_environment(tree))
    return {line.strip() for line in printed.stdout.splitlines() if line[:1].strip()}


def _environment(tree: Path) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(tree.resolve()), "OMP_NUM_THREADS": "1", "PYTHONIOENCODING": "utf-8"}


def _settings(draw: random.Random, names: list[str], most: int) -> Iterator[str]:
    """Yield arguments that set up to ``most`` of these settings."""
    for name in draw.sample(names, draw.randint(0, most)):
        yield from ("--set", f"{name}={draw.choice(VALUES[name])}")


def _race(draw: random.Random, presets: list[str]) -> list[str]:
    command = ["race", "--fairness", draw.choice(("updates", "samples", "step_length"))]
    for preset in draw.sample(presets, draw.randint(2, 4)):
        command += ["--algorithm", preset]
    command += ["--own-mu"] * (draw.random() < 0.3) + ["--local-peak"] * (draw.random() < 0.2)
    return [*command, *_settings(draw, list(VALUES), 3), "--seeds", "4", "--updates", draw.choice(("10", "20", "40"))]


def _sweep(draw: random.Random, presets: list[str]) -> list[str]:
    over = draw.sample([name for name in VALUES if name not in LISTS], 1 + (draw.random() < 0.3))
    command = ["sweep"]
    for name in over:
        command += ["--over", f"{name}={','.join(VALUES[name][: 3 if len(over) > 1 else None])}"]
    others = [name for name in VALUES if name not in over]
    return [*command, *_settings(draw, others, 4), "--seeds", "4", "--updates", draw.choice(("10", "20", "30"))]


def _bandit(draw: random.Random, presets: list[str]) -> list[str]:
    steps = ("--steps", draw.choice(("5", "12", "25")), "--seed", str(draw.randrange(100)))
    return ["train", "--preset", draw.choice(presets), *_settings(draw, list(VALUES), 5), *steps]


def _language(draw: random.Random, presets: list[str]) -> list[str]:
    names = [name for name in VALUES if name not in ONLY_BANDIT and not name.startswith("task.")]
    model = ("--set", "learner.group_size=4", "--set", f"model.adapter_rank={draw.choice((0, 4, 8))}")
    steps = ("--steps", "4", "--seed", str(draw.randrange(100)))
    return ["train", "--language", "--preset", draw.choice(presets), *_settings(draw, names, 4), *model, *steps]


def _compared(other: Path, commands: list[list[str]]) -> Iterator[tuple[list[str], bool | None]]:
    """Yield each command and whether its files are equal in both trees, or None if both refuse it."""
    with tempfile.TemporaryDirectory() as folder:
        theirs, ours, read = (Path(folder) / name for name in ("theirs", "ours", "read"))
        (Path(folder) / "commands.json").write_text(json.dumps(commands), encoding="utf-8")
        for tree, into in ((other, theirs), (ROOT, ours)):
            into.mkdir()
            script = [sys.executable, __file__, str(tree.resolve()), "--into", str(into)]
            subprocess.run(script, cwd=tree, check=True, env=_environment(tree))
        read.mkdir()
        for number, command in enumerate(commands):
            kept = theirs / f"{number}.grpo"
            if kept.exists():  # a run file of the other tree, opened by this one
                _call("verify", str(kept), into=read / f"{number}.verified")
                _call("export", str(kept), "--out", str(read / str(number)), into=read / f"{number}.exported")
            files = [{path.name: path.read_bytes() for path in _tables(side, number)} for side in (theirs, ours)]
            same = files[0] == files[1] if files[0] or files[1] else None
            if kept.exists():
                again = {path.name: path.read_bytes() for path in _tables(read, number)}
                verified = (read / f"{number}.verified").read_text(encoding="utf-8").startswith("0\n")
                same = same and verified and again == files[0]
            yield command, same


def _tables(folder: Path, number: int) -> list[Path]:
    """Return the CSV files of a command: curves of an experiment, or series and samples of a run."""
    return [path for path in (folder / f"{number}.csv", *(folder / str(number)).glob("*.csv")) if path.exists()]


def _run_all(tree: Path, into: Path) -> int:
    """Run the commands of ``commands.json`` with the code in ``tree``, and write their files to ``into``."""
    for number, command in enumerate(json.loads((into.parent / "commands.json").read_text(encoding="utf-8"))):
        trains = command[0] == "train"
        out = into / f"{number}{'.grpo' if trains else '.csv'}"
        _call(*command, "--out", str(out), into=into / f"{number}.printed")
        if trains and out.exists():
            _call("export", str(out), "--out", str(into / str(number)), into=into / f"{number}.exported")
    return 0


def _call(*arguments: str, into: Path) -> None:
    """Call the command line in this process, and write its exit status and what it printed to a file."""
    from grpo_core.commands.cli import main as command_line  # of the tree that PYTHONPATH names

    printed = io.StringIO()
    status: object = 0
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
        try:
            status = command_line(list(arguments))
        except SystemExit as stop:
            status = stop.code
    into.write_text(f"{status or 0}\n{printed.getvalue()}", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
