"""Many runs side by side, like :mod:`grpo_core.experiments.ensemble`, but compiled by JAX: ``--fast``.

It uses the same formulas and the same random numbers, in double precision. Results differ from NumPy's by rounding.
Some of the runs are repeated with NumPy, and the largest difference is reported.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack
from functools import cache
from importlib import import_module
from itertools import groupby
from types import ModuleType
from typing import Any

import numpy as np

from grpo_core.arrays import Array
from grpo_core.bandit import tabular_policy as policy
from grpo_core.bandit.layout import keep_freed_memory, runs_first_view, runs_last_view
from grpo_core.bandit.simulate import never
from grpo_core.bandit.streams import UPDATES, Streams
from grpo_core.bandit.tasks import task
from grpo_core.config import Settings
from grpo_core.errors import GrpoError, SettingsError
from grpo_core.experiments.ensemble import (
    SIDE_BY_SIDE,
    Beside,
    Ensemble,
    columns,
    ensembles,
    portions,
    require_side_by_side,
    shared,
    split,
)
from grpo_core.experiments.gauge import MEASURES, Gauge, measured
from grpo_core.text import tr

POINTS, SEEDS = 4, 2
"""Maximum number of points, and of seeds per point, that are also trained with NumPy.

The numbers apply to each set of points computed in the same calls.
"""


def fast_ensembles(
    points: Sequence[Settings], seeds: Sequence[int], updates: int, *, poll: Callable[[], None] = never
) -> Iterator[Ensemble]:
    """Train like :func:`grpo_core.experiments.ensemble.ensembles`, but with JAX.

    Some runs of each ensemble are repeated with NumPy and stored in ``beside``.

    Raises:
        SettingsError: as in that function; or a point needs something that is not compiled. Raised before anything is
            computed.
        GrpoError: JAX is not installed.
    """
    require_side_by_side(points, seeds)
    for point in points:
        _require_compiled(point)
    jax_module()
    return _ensembles(points, tuple(seeds), updates, poll)


def _require_compiled(point: Settings) -> None:
    """Raise a SettingsError for settings that only NumPy supports."""
    learner = point.learner
    for path, value, off in (
        ("learner.resample_dead", learner.resample_dead, tr("false")),
        ("learner.staleness", learner.staleness, "0"),
    ):
        if value:
            raise SettingsError(
                path,
                value,
                tr("the fast path does not support it; choose {off}, or turn the fast path off").format(off=off),
            )


@cache
def jax_module() -> ModuleType:
    """Import JAX.

    Raises:
        GrpoError: it is not installed.
    """
    try:
        return import_module("jax")
    except ImportError:
        raise GrpoError(tr("The fast path needs JAX: pip install grpo-lab[fast].")) from None


def _double() -> AbstractContextManager[object]:
    """Return a context manager for double precision on the CPU, which does not affect other users of JAX."""
    stack, jax = ExitStack(), jax_module()
    stack.enter_context(jax.enable_x64(True))
    stack.enter_context(jax.default_device(jax.local_devices(backend="cpu")[0]))
    return stack


def _ensembles(
    points: Sequence[Settings], seeds: tuple[int, ...], updates: int, poll: Callable[[], None]
) -> Iterator[Ensemble]:
    for _, alike in groupby(points, key=shared):
        together = list(alike)
        chosen = [together[place] for place in _spread(len(together), POINTS)]
        few = tuple(seeds[place] for place in _spread(len(seeds), SEEDS))
        by_numpy = dict(zip(map(Settings.to_json, chosen), ensembles(chosen, few, updates, poll=never), strict=True))
        nothing = Beside(seeds=(), measures={})
        for part in portions(together, len(seeds)):
            for runs in _side_by_side(part, seeds, updates, poll):
                other = by_numpy.get(runs.settings.to_json())
                beside = nothing if other is None else Beside(seeds=other.seeds, measures=other.measures)
                yield Ensemble(
                    settings=runs.settings, seeds=seeds, measures=runs.measures, policy=runs.policy, beside=beside
                )


def _spread(count: int, most: int) -> list[int]:
    """Choose up to ``most`` of ``count`` indices, evenly spread, including the first and the last."""
    return sorted({*np.linspace(0, count - 1, min(count, most)).round().astype(int).tolist()})


def _side_by_side(
    points: list[Settings], seeds: tuple[int, ...], updates: int, poll: Callable[[], None]
) -> Iterator[Ensemble]:
    keep_freed_memory()
    work = task(points[0].bandit)
    varied, lone = columns(points, 1), points[0].replace({"seed": 0})
    names = tuple(path for path in SIDE_BY_SIDE if isinstance(varied.get(path), np.ndarray))
    lone = lone.replace({path: Settings().get(path) for path in names})  # other values need no recompilation
    values = tuple(varied.get(path).ravel() for path in names)
    assert work.action_rewards is not None
    table = np.repeat(work.start.reshape(*work.action_rewards.shape, 1), len(points) * len(seeds), axis=-1)
    own = columns(points, len(seeds))
    gauge = Gauge(work, runs_first_view(table), own.learner.temperature, updates)
    streams = Streams(seeds)
    each = len(work.start) * points[0].learner.group_size
    with _double():
        from grpo_core.bandit.traced import State

        nothing = np.zeros_like(table)
        state = State(table, nothing, nothing, np.zeros((), np.int64), nothing[:, :1])
        numbers = np.empty((UPDATES, each, len(seeds)))
        for first in range(0, updates, UPDATES):
            count = min(UPDATES, updates - first)
            for place in range(count):
                numbers[place] = runs_last_view(streams.uniforms(first + place + 1, each))[:, : len(seeds)]
            state, found = _compiled()(lone, names, values, state, numbers, count, np.True_)
            gauge.keep({name: np.asarray(measure)[:count] for name, measure in found.items()})
            for _ in range(count * lone.learner.mu):
                poll()
        logits = runs_first_view(np.array(state.logits))
    gauge.read(policy.log_probs(logits, own.learner.temperature))
    yield from split(points, seeds, gauge)


@cache
def _compiled() -> Callable[..., Any]:
    """Return the compiled function for up to ``UPDATES`` updates.

    It serves all settings that differ only in ``values``.
    """
    jax = jax_module()
    from grpo_core.bandit.traced import State, Updates

    def run(
        settings: Settings,
        names: tuple[str, ...],
        values: tuple[Array, ...],
        state: State,
        numbers: Array,
        count: Array,
        true: Array,
    ) -> tuple[State, dict[str, Array]]:
        """Compute ``count`` updates, and the measures of the policy before each, (UPDATES, R) by name.

        Args:
            settings: the common settings of all points, with arbitrary values for those that differ.
            names, values: path of each differing setting, and its value at each point.
            state: state of R runs, ordered by point, then by seed.
            numbers: random numbers of every seed, (UPDATES, B, S).
            count, true: number of updates, and the value true, passed in so that the compiler does not know it.
        """
        jnp, work = jax.numpy, task(settings.bandit)
        rewards, runs, seeds = work.action_rewards, state.logits.shape[-1], numbers.shape[-1]
        assert rewards is not None
        own = {name: jnp.repeat(value, seeds) for name, value in zip(names, values, strict=True)}
        updates = Updates(settings, own, work.start.reshape(rewards.shape), rewards, true)

        def body(place: Array, carried: tuple[State, dict[str, Array]]) -> tuple[State, dict[str, Array]]:
            state, found = carried
            uniforms = jnp.tile(numbers[place], (1, runs // seeds)).reshape(len(rewards), -1, runs)
            after, dist = updates.after(state, uniforms)
            measures = updates.measured(measured, dist, after.logits - state.logits)
            return after, {name: found[name].at[place].set(value) for name, value in measures.items()}

        empty = {name: jnp.zeros((len(numbers), runs)) for name in MEASURES}
        done: tuple[State, dict[str, Array]] = jax.lax.fori_loop(0, count, body, (state, empty))
        return done

    compiled: Callable[..., Any] = jax.jit(run, static_argnums=(0, 1))
    return compiled
