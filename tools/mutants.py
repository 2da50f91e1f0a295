"""Measure how many mutants of the lab's core its tests kill, with cosmic-ray.

    make mutants [ARGS="--count 40 --seed 1 --only kl.py"]

A mutant is the program with one operator or number exchanged. The mutants are drawn by a seed and run one after the
other in a copy of the tree, with the quick tests of the lab. An interrupted measurement goes on where it stopped.
Mutants in ``tools/equivalent_mutants.txt`` compute the same as the program and are not counted.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
EQUIVALENT = Path(__file__).with_name("equivalent_mutants.txt")
OPERATORS = {
    f"core/{name}"
    for name in (
        *(f"ReplaceBinaryOperator_{pair}" for pair in ("Add_Sub", "Sub_Add", "Mul_Div", "Div_Mul", "Pow_Mul")),
        *(f"ReplaceComparisonOperator_{pair}" for pair in ("Eq_NotEq", "NotEq_Eq", "Is_IsNot", "IsNot_Is")),
        *(f"ReplaceComparisonOperator_{pair}" for pair in ("Lt_LtE", "LtE_Lt", "Gt_GtE", "GtE_Gt", "Lt_Gt", "Gt_Lt")),
        *("ReplaceAndWithOr", "ReplaceOrWithAnd", "ReplaceTrueWithFalse", "ReplaceFalseWithTrue"),
        *("ReplaceUnaryOperator_USub_UAdd", "ReplaceUnaryOperator_Delete_Not", "NumberReplacer"),
    )
}
"""Operators of cosmic-ray: comparisons, arithmetic, constants and logic."""
MODULES = (
    *("advantages.py", "baselines.py", "deviations.py", "evaluated_step.py", "kl.py", "leading.py", "levels.py"),
    *("metrics.py", "objective.py", "recompute.py", "reductions.py", "rounding.py", "surrogates", "bandit"),
)
"""The centre of the core, by its paths in ``grpo_core``."""
TESTS = "-m pytest -q -x -n 2 -p no:cacheprovider -m 'not slow and not long' tests/core"
LONGEST_S = 900.0
"""Time after which a mutant counts as killed, because its tests do not end."""


def main() -> int:
    """Draw, run and list mutants, and return the exit status."""
    parser = argparse.ArgumentParser(prog="make mutants", description="Measure how many mutants the tests kill.")
    parser.add_argument("--count", type=int, default=40, help="number of mutants (default 40)")
    parser.add_argument("--seed", type=int, default=1, help="seed of the draw (default 1)")
    parser.add_argument("--only", default="", metavar="TEXT", help="only mutants in files whose path contains this")
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "mutants", help="folder of the copy")
    options = parser.parse_args()
    from cosmic_ray.work_db import use_db

    folder: Path = options.folder
    session = folder / f"{options.count}-{options.seed}-{options.only.replace('/', '_')}.sqlite"
    config = folder / "mutants.toml"
    copy_tree(folder / "tree")
    config.write_text(configuration(), encoding="utf-8")
    cosmic_ray = [sys.executable, "-m", "cosmic_ray.cli"]
    where: dict[str, Any] = {"cwd": folder / "tree", "check": True}
    environment = {**os.environ, "GRPO_LAB_PARTS": "", "PYTHONDONTWRITEBYTECODE": "1"}
    if not session.exists():
        subprocess.run([*cosmic_ray, "init", config, session], env=environment, **where)
        with use_db(session) as database:
            items = [item for item in database.work_items if item.mutations[0].operator_name in OPERATORS]
            items = [item for item in items if options.only in str(item.mutations[0].module_path)]
            items.sort(key=lambda item: _order(item.mutations[0]))
            drawn = random.Random(options.seed).sample(items, min(options.count, len(items)))
            print(f"{len(drawn)} of {len(items):,} mutants are drawn.", flush=True)
            database.clear()
            database.add_work_items(drawn)
    subprocess.run([*cosmic_ray, "baseline", config], env=environment, **where)  # the tests pass without a mutant
    subprocess.run([*cosmic_ray, "exec", config, session], env=environment, **where)
    with use_db(session) as database:
        print(report(database.completed_work_items))
    return 0


def copy_tree(target: Path) -> None:
    """Copy the files that git lists to ``target``, which is made anew."""
    shutil.rmtree(target, ignore_errors=True)
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", "-z"], cwd=ROOT, check=True, capture_output=True, text=True
    )
    for name in filter(None, listed.stdout.split("\0")):
        if (ROOT / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, target / name)


def configuration() -> str:
    """Return cosmic-ray's configuration as TOML."""
    modules = ", ".join(f'"grpo_core/{name}"' for name in MODULES)
    command = f"{shlex.quote(sys.executable)} {TESTS}"
    return (
        f"[cosmic-ray]\nmodule-path = [{modules}]\ntimeout = {LONGEST_S}\nexcluded-modules = []\n"
        f'test-command = "{command}"\n[cosmic-ray.distributor]\nname = "local"\n'
    )


def report(completed: Iterable[tuple[Any, Any]]) -> str:
    """Return one line per mutant, and the share that was killed."""
    known = [line.partition(" # ")[0].rstrip() for line in EQUIVALENT.read_text("utf-8").splitlines() if line.strip()]
    lines, killed, counted = [], 0, 0
    for item, result in sorted(completed, key=lambda pair: _order(pair[0].mutations[0])):
        mutation = item.mutations[0]
        new = "".join(re.findall(r"^\+(?!\+\+)\s*(.*)$", result.diff or "", re.M))
        place = f"{mutation.module_path}:{mutation.start_pos[0]}"
        if f"{mutation.module_path} {new}" in known:
            lines.append(f"equivalent  {place}  {new}")
            continue
        dead = result.test_outcome is None or result.test_outcome.value != "survived"
        killed, counted = killed + dead, counted + 1
        lines.append(f"{'killed' if dead else 'ALIVE ':10}  {place}  {new}")
    return "\n".join([*lines, f"{killed} of {counted} killed, {killed / max(counted, 1):.0%}."])


def _order(mutation: Any) -> tuple[str, tuple[int, int], str, int]:
    return str(mutation.module_path), mutation.start_pos, mutation.operator_name, mutation.occurrence


if __name__ == "__main__":
    sys.exit(main())
