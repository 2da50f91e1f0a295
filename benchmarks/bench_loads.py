"""Loads that are large or last: 500 runs at home, 50 runs open, completions of 4,000 tokens, and training flat out.

    python -m benchmarks.bench_loads [first many large flat]

The real program offscreen, 1366 x 768. At the end a bandit trains flat out for 20 minutes, or as many as
``GRPO_LAB_BENCH_MINUTES`` says; the memory and the open files of the program and its processes after a quarter of that
time are compared with those at the end. The other times but those after a click are processor times.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from itertools import islice
from pathlib import Path

import numpy as np
import psutil

from app.panels.home.buttons import previews
from benchmarks.table import measured
from benchmarks.window import Window
from grpo_core.config import Settings, language_settings
from grpo_core.learners import learner
from grpo_core.record import Step
from grpo_core.runs.run_file import RunWriter

MINUTES = float(os.environ.get("GRPO_LAB_BENCH_MINUTES", "20"))
HOME, OPEN = 500, 50
COMPLETIONS, TOKENS, GROUP = 512, 4000, 8


def timed(call: Callable[[], object]) -> float:
    """Return the processor time in seconds that ``call`` took."""
    begin = time.process_time()
    call()
    return time.process_time() - begin


def long_completions(number: int) -> Step:
    """Return an update of ``COMPLETIONS`` completions of ``TOKENS`` random tokens each."""
    rng, shape = np.random.default_rng(number), (COMPLETIONS, TOKENS)
    old = -rng.exponential(0.5, shape).astype(np.float32)
    return Step(
        step=number,
        settings=language_settings().replace({"task.prompts": COMPLETIONS // GROUP, "learner.group_size": GROUP}),
        group=np.arange(COMPLETIONS, dtype=np.int32) // GROUP,
        row_id=np.arange(COMPLETIONS, dtype=np.int32),
        prompt_tokens=rng.integers(1, 20, (COMPLETIONS // GROUP, 30)).astype(np.int32),
        tokens=rng.integers(1, 20, shape).astype(np.int32),
        mask=np.ones(shape, dtype=bool),
        rewards=rng.random(COMPLETIONS),
        old_logp=old,
        ref_logp=old - np.float32(0.01),
        logp=np.stack([old, old + rng.normal(0, 0.01, shape).astype(np.float32)]),
        part=np.zeros((1, COMPLETIONS), dtype=np.int32),
    )


def written(path: Path, steps: list[Step]) -> Path:
    """Record ``steps`` as a run at ``path``."""
    with RunWriter.create(path, steps[0].settings) as writer:
        for step in steps:
            writer.append(step)
    return path


def many_runs(folder: Path) -> None:
    """Report how long the list of ``HOME`` runs takes, and a frame with ``OPEN`` of them open."""
    window, steps = Window(folder), list(islice(learner(Settings()), 20))
    window.program.runs.new_bandit_run()
    home = window.program.run_manager.folder
    home.mkdir(parents=True, exist_ok=True)
    paths = [written(home / f"{number}.grpo", steps) for number in range(HOME)]
    listed = timed(lambda: list(previews(home, lambda: None)))
    before = held()[0]
    opened = [timed(partial(window.program.run_manager.open, path)) for path in paths[:OPEN]]
    frames = scrubbed(window, len(steps))
    each = (held()[0] - before) / OPEN
    window.close()
    print(f"the last of {HOME} runs at home, listed in the background in {1e3 * listed:.0f} ms")
    last = 1e3 * statistics.median(opened[-10:])
    print(f"{OPEN} runs open: the last ten took {last:.0f} ms each, a scrub {frames:.1f} ms, {each:.1f} MB each")
    measured("home", listed)
    measured("open_runs", frames)


def scrubbed(window: Window, last: int) -> float:
    """Return the median processor time in milliseconds of moving to another update and showing it."""
    times = []
    for number in 3 * list(range(1, last + 1)):
        window.program.workspace.move_to(number)
        times.append(1e3 * timed(window.frame))
    return statistics.median(times)


def large_updates(folder: Path) -> None:
    """Report how long a run of updates of ``COMPLETIONS`` completions takes to open and to scrub."""
    path = written(folder / "large.grpo", [long_completions(number) for number in (1, 2, 3)])
    window = Window(folder / "home")
    opened = timed(lambda: (window.program.run_manager.open(path), window.frame()))
    window.wait(500)
    scrub = scrubbed(window, 3)
    window.close()
    print(f"{COMPLETIONS} x {TOKENS:,} tokens: opened in {opened:.2f} s, a scrub {scrub:.0f} ms, {held()[0]:.0f} MB")
    measured("large_update", scrub)


def first_reaction(folder: Path) -> None:
    """Report the time that a click on Run takes with what it paints at once, and the time to the first update."""
    window, reactions, updates = Window(folder), list[float](), list[float]()
    for _ in range(5):
        window.program.runs.new_bandit_run()
        window.wait(300)
        begin = time.perf_counter()
        window.program.player.run()
        window.app.processEvents()
        reactions.append(time.perf_counter() - begin)
        window.until(lambda: window.program.workspace.view.step.number >= 1)
        updates.append(time.perf_counter() - begin)
        window.program.player.pause()
        window.until_paused()
    window.close()
    reaction, update = (1e3 * statistics.median(times) for times in (reactions, updates))
    print(f"a click on Run: answered after {reaction:.0f} ms, a bandit's first update after {update:.0f} ms")
    measured("reaction", reaction)


def held() -> tuple[float, int]:
    """Return the memory in megabytes and the number of open files of this process and its children."""
    family = [psutil.Process(), *psutil.Process().children(recursive=True)]
    return sum(each.memory_info().rss for each in family) / 1e6, sum(each.num_fds() for each in family)


def flat_out(folder: Path) -> None:
    """Train at full speed, and report how much memory and how many open files the program gained."""
    window, samples = Window(folder), list[tuple[float, int]]()
    window.program.runs.new_bandit_run()
    window.program.player.set_length(None)
    window.program.player.run()
    for _ in range(20):
        window.wait(round(3000 * MINUTES))
        samples.append(held())
        number = window.program.workspace.view.step.number
        print(f"  {number:>12,} updates {samples[-1][0]:8.0f} MB {samples[-1][1]:4} open files", flush=True)
    window.program.player.pause()
    window.close()
    memory, files = (max(x[i] for x in samples[-3:]) - max(x[i] for x in samples[3:6]) for i in (0, 1))
    print(f"{MINUTES:g} minutes flat out: {memory:+.0f} MB and {files:+} open files after the first quarter")
    measured("growth", memory)
    measured("files", files)


PARTS: dict[str, Callable[[Path], None]] = {
    "first": first_reaction,
    "many": many_runs,
    "large": large_updates,
    "flat": flat_out,
}


def main(names: list[str]) -> None:
    """Measure the given loads, or each in a process of its own, and print the results."""
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            PARTS[name](Path(folder))
    for name in () if names else PARTS:
        subprocess.run([sys.executable, "-m", "benchmarks.bench_loads", name], check=True)


if __name__ == "__main__":
    main(sys.argv[1:])
