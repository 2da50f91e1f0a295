"""The bandit's speed: one run with everything recorded, the many runs of a race or a sweep, and the same update as a
plain Python loop.

    python -m benchmarks.bench_bandit

The loop is written independently, using only lists and ``math``; it draws the same numbers and must end at the same
logits within 1e-9. Many runs are computed as for the window, with all measures of each run after every update; the loop
that they are compared with measures exact KL and reward. Times are medians of rounds in which the competitors take
turns.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Iterator
from itertools import islice

import numpy as np

from app.jobs.jobs import Jobs
from app.jobs.shared_job import shared_ensembles
from benchmarks.table import ROWS, measured
from grpo_core import objective
from grpo_core.bandit.simulate import updates
from grpo_core.bandit.streams import UPDATES, Streams
from grpo_core.config import Settings
from grpo_core.experiments.ensemble import ensembles
from grpo_core.host.loop import MOST_TOGETHER
from grpo_core.learners import learner
from grpo_core.metrics import metrics_of
from grpo_core.progress import unpolled
from grpo_core.record import Step
from grpo_core.runs.layout import encoded
from grpo_core.runs.series import scalars as scalar_row

ROUNDS = 7
KEYS = {row.key for row in ROWS}
SEEDS, MANY = 64, 16384
RUNS = (SEEDS, 1024, MANY)
LARGE_GROUPS = (64, 256)
"""Group sizes at which each of the ten actions is drawn several times."""
Table = list[float]


def naive_updates(settings: Settings, seed: int) -> Iterator[Table]:
    """Yield the logits after each update of GRPO on the single peak, computed one number at a time."""
    o, task = settings.objective, settings.bandit
    group, rate = settings.learner.group_size, settings.optimizer.learning_rate
    rewards = [max(0.0, 1 - abs(a + 1 - task.peak) / task.half_width) for a in range(task.actions)]
    logits, reference = [0.0] * task.actions, [-math.log(task.actions)] * task.actions
    stream, step = Streams([seed]), 0
    while True:
        step += 1
        old = _log_softmax(logits)
        actions = [_choose(old, u) for u in stream.uniforms(step, group)[0].tolist()]
        scores = [rewards[a] for a in actions]
        mean = sum(scores) / group
        std = math.sqrt(sum((r - mean) ** 2 for r in scores) / (group - 1))
        for _ in range(settings.learner.mu):
            now = _log_softmax(logits)
            prob = [math.exp(x) for x in now]
            change = [0.0] * task.actions
            for a, r in zip(actions, scores, strict=True):
                advantage = (r - mean) / (std + o.std_epsilon) if std > 1e-12 else 0.0
                ratio = math.exp(now[a] - old[a])
                stopped = ratio > 1 + o.clip_high if advantage > 0 else ratio < 1 - o.clip_low
                push = 0.0 if stopped else -ratio * advantage
                slope = (push - o.beta * (math.exp(reference[a] - now[a]) - 1)) / group
                for j in range(task.actions):
                    change[j] += slope * ((1.0 if j == a else 0.0) - prob[j])
            logits = [z - rate * g for z, g in zip(logits, change, strict=True)]
        yield logits


def naive_measures(settings: Settings, seed: int) -> Iterator[tuple[float, float]]:
    """Yield the exact KL and expected reward after each update of :func:`naive_updates`."""
    task = settings.bandit
    rewards = [max(0.0, 1 - abs(a + 1 - task.peak) / task.half_width) for a in range(task.actions)]
    for logits in naive_updates(settings, seed):
        logp = _log_softmax(logits)
        prob = [math.exp(x) for x in logp]
        kl = sum(p * (x + math.log(len(logits))) for p, x in zip(prob, logp, strict=True))
        yield kl, sum(p * r for p, r in zip(prob, rewards, strict=True))


def _log_softmax(logits: Table) -> Table:
    highest = max(logits)
    total = math.log(sum(math.exp(z - highest) for z in logits)) + highest
    return [z - total for z in logits]


def _choose(logp: Table, u: float) -> int:
    cumulative = 0.0
    for a, x in enumerate(logp):
        cumulative += math.exp(x)
        if u < cumulative:
            return a
    return len(logp) - 1


def check_equal(settings: Settings, seed: int, count: int = 50) -> float:
    """Return the largest difference between the loop's logits and ours after ``count`` updates."""
    ours, loop = updates(settings, [seed]), naive_updates(settings, seed)
    for _ in range(count):
        mine, plain = next(ours).state.logits[0].ravel(), next(loop)
    return float(np.abs(mine - plain).max())


def medians(competitors: dict[str, tuple[Callable[[], object], int]]) -> dict[str, float]:
    """Return the time in seconds per call of each competitor, which is given as (function, calls per round). They take
    turns.
    """
    times: dict[str, list[float]] = {name: [] for name in competitors}
    for _ in range(ROUNDS):
        for name, (call, calls) in competitors.items():
            begin = time.perf_counter()
            for _ in range(calls):
                call()
            times[name].append((time.perf_counter() - begin) / calls)
    return {name: statistics.median(t) for name, t in times.items()}


def recorded(settings: Settings) -> Iterator[Step]:
    """Yield the updates of a run after computing what its process records: the metrics, for several updates
    together, and the bytes of each update.
    """
    run = learner(settings)
    while True:
        steps = list(islice(run, MOST_TOGETHER))
        for step, scalars in zip(steps, metrics_of(steps), strict=True):
            encoded(step), scalar_row(step, scalars)
            yield step


def loss_gradient(settings: Settings, runs: int) -> Callable[[], object]:
    """Return a function that computes only the gradient of the shared loss, on a batch like the bandit's with ``runs``
    runs.
    """
    done = next(updates(settings, range(runs)))
    logp, mask = done.passes.logp[-1], done.batch.completions.mask
    return lambda: objective.gradient(
        settings.objective, logp, done.passes.logp[0], done.advantage, mask, ref_logp=done.passes.ref_logp
    )


def many(settings: Settings, runs: int, jobs: Jobs) -> Callable[[], object]:
    """Return a function that computes ``UPDATES`` updates of a sweep over β with ``SEEDS`` seeds. The largest sweep is
    distributed over processes on all cores.
    """
    points = [settings.replace({"objective.beta": beta}) for beta in np.linspace(0.01, 1, runs // SEEDS).tolist()]
    if runs == MANY:
        return lambda: list(shared_ensembles(jobs, points, SEEDS, UPDATES, poll=unpolled))
    return lambda: list(ensembles(points, range(SEEDS), UPDATES))


def completion(settings: Settings, group: int) -> float:
    """Return the processor time in nanoseconds of one completion among 1,024 runs with groups of size ``group``, on
    one core.
    """
    call = many(settings.replace({"learner.group_size": group}), 1024, Jobs())
    times = []
    for _ in range(ROUNDS):
        begin = time.process_time()
        call()
        times.append(time.process_time() - begin)
    return statistics.median(times) / (1024 * UPDATES * group) * 1e9


def report(mu: int, jobs: Jobs) -> None:
    """Print the table for updates of ``mu`` passes."""
    settings = Settings().replace({"learner.mu": mu})
    difference = max(check_equal(settings, seed) for seed in (1, 2, 3))
    if not difference < 1e-9:
        raise SystemExit(f"the loop and the learner differ by {difference:.2g} in the logits")
    one, kept, loop = learner(settings), recorded(settings), naive_updates(settings, settings.seed)
    measures = naive_measures(settings, settings.seed)
    competitors: dict[str, tuple[Callable[[], object], int]] = {
        "loop": (lambda: next(loop), 100),
        "measured loop": (lambda: next(measures), 100),
        "one": (lambda: next(one), 100),
        "kept": (lambda: next(kept), 2 * MOST_TOGETHER),
        "loss at 1": (loss_gradient(settings, 1), 300),
        "loss at 1024": (loss_gradient(settings, 1024), 30),
    }
    competitors |= {f"R {runs}": (many(settings, runs, jobs), 1) for runs in RUNS}
    seconds = medians(competitors)
    seconds |= {f"R {runs}": seconds[f"R {runs}"] / UPDATES for runs in RUNS}
    print(f"G 8, A 10, mu {mu}; logits equal the plain loop's within {difference:.1e}")
    print(f"  plain Python loop              {seconds['loop'] * 1e9:12,.0f} ns a run-step        1.0x")
    print(f"  the same, measured             {seconds['measured loop'] * 1e9:12,.0f} ns a run-step")
    faster = seconds["loop"] / seconds["one"]
    print(f"  R = 1, everything recorded     {seconds['one'] * 1e9:12,.0f} ns a run-step {faster:10.1f}x", end="")
    print(f"   {1 / seconds['one']:,.0f} steps a second")
    print(f"  the same, metrics and record   {seconds['kept'] * 1e9:12,.0f} ns a run-step", end="")
    print(f" {seconds['loop'] / seconds['kept']:10.1f}x   {1 / seconds['kept']:,.0f} steps a second")
    for runs in RUNS:
        each = seconds[f"R {runs}"] / runs
        faster = seconds["measured loop"] / each
        if mu == 1 and f"bulk_{runs}" in KEYS:
            measured(f"bulk_{runs}", faster)
        print(f"  R = {runs:<6}                     {each * 1e9:12,.0f} ns a run-step {faster:10.1f}x")
    for group in LARGE_GROUPS:
        each = completion(settings, group)
        if mu == 1:
            measured(f"completion_{group}", each)
        print(f"  R = 1024, G = {group:<4}             {each:12,.1f} ns a completion")
    if mu == 1:
        measured("recorded", 1 / seconds["kept"])
    for runs, all_of_it in ((1, seconds["one"]), (1024, seconds["R 1024"])):
        share = mu * seconds[f"loss at {runs}"] / all_of_it
        print(f"  the shared loss's gradient takes {share:.0%} of an update at R = {runs}")


def main() -> None:
    """Print the tables for one pass and for four."""
    jobs = Jobs(own_process=True)
    try:
        for mu in (1, 4):
            report(mu, jobs)
    finally:
        jobs.close()


if __name__ == "__main__":
    main()
