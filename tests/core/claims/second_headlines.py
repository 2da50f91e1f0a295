"""A second check of headlines of races, sweeps and repeats, from their English words and the raw arrays alone.

Nothing here imports what makes these sentences, or the statistics behind them. Intervals are those of another
bootstrap, and a claim about chance is only called false if it is so beyond the difference between two bootstraps.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tests.core.claims.second_check import number

NUMBER = r"(−?(?:∞|\d[\d,]*(?:\.\d+)?))"
SURE, UNSURE = 0.04, 0.004
"""Shares of resamples on the other side of 0: more than the first is no clear difference, fewer than the second is one
even after a correction for ten comparisons.
"""
NAME = "(?:NAME)"
"""Stands for any name of the data in a pattern."""


def reads(text: str, value: float) -> bool:
    """Return whether a text shows ``value``, to the digits that it has."""
    if math.isinf(number(text)) or math.isinf(value):
        return number(text) == value
    return abs(number(text) - value) <= 0.5001 * 10.0 ** -len(text.partition(".")[2]) + 1e-9 * abs(value)


def resampled(values: np.ndarray, *, median: bool = False) -> np.ndarray:
    """Return the mean, or the lower median, of 3,000 resamples of ``values`` (S,)."""
    places = np.random.default_rng(12345).integers(len(values), size=(3000, len(values)))
    again = np.sort(values[places], axis=-1)
    return np.asarray(again[:, (len(values) - 1) // 2] if median else again.mean(axis=-1))


def above(one: np.ndarray, other: np.ndarray, *, median: bool = False) -> float:
    """Return the share of resamples in which ``one`` (S,) is not above ``other``."""
    with np.errstate(invalid="ignore"):
        apart = np.where(one == other, 0.0, one - other)
    return float((resampled(np.where(np.abs(apart) < 1e-9, 0.0, apart), median=median) <= 0).mean())


def around(found: re.Match[str], low: int, values: np.ndarray) -> bool:
    """Return whether a shown interval holds the middle half of the resamples of ``values``, and their mean."""
    ends = np.quantile(resampled(values), [0.25, 0.75])
    slack = 10.0 ** -len(found[low].partition(".")[2])
    return number(found[low]) - slack <= ends[0] and ends[1] <= number(found[low + 1]) + slack


def last(data: Any, name: str) -> np.ndarray:
    """Return the last value of each seed, (S,); a seed without one has the lowest."""
    end = data.courses[name][-1]
    return np.where(np.isfinite(end), end, data.floor)


def means(data: Any) -> dict[str, float]:
    return {name: float(last(data, name).mean()) for name in data.courses}


def is_top(data: Any, name: str) -> bool:
    return means(data)[name] >= max(means(data).values()) - 1e-9


def names_in(text: str, data: Any) -> list[str]:
    """Return the names of a list such as "A, B and C". A name can contain another."""
    known = sorted(data.courses, key=len, reverse=True)
    return re.findall("|".join(map(re.escape, known)), text)


def _leads(m: re.Match[str], data: Any, one: str, other: str, at: int) -> bool:
    end, rest = means(data), [name for name in data.courses if name != one]
    apart = last(data, one) - last(data, other)
    clear = all(above(last(data, one), last(data, name)) <= SURE for name in rest)
    second = end[other] >= max(end[name] for name in rest) - 1e-9
    shown = reads(m[at], float(apart.mean())) and around(m, at + 1, apart) and number(m[at + 1]) >= 0
    return is_top(data, one) and second and clear and shown and len(apart) >= 8


def _are_level(data: Any, names: list[str]) -> bool:
    """Return whether the first of ``names`` is highest, none of the others is clearly behind it, and the rest is."""
    top = last(data, names[0])
    near = all(above(top, last(data, name)) >= UNSURE for name in names)
    far = all(above(top, last(data, name)) <= SURE for name in data.courses if name not in names)
    return is_top(data, names[0]) and near and far


def _two_level(m: re.Match[str], data: Any) -> bool:
    names = names_in(m[1], data)
    return _are_level(data, names) and reads(m[2], means(data)[names[0]]) and len(names) > 1


def _apart(m: re.Match[str], data: Any) -> bool:
    names = names_in(m[1], data)
    return reads(m[2], float((last(data, names[0]) - last(data, names[1])).mean())) and len(names) == 2


def _same_end(m: re.Match[str], data: Any) -> bool:
    return all(reads(m[2], means(data)[name]) for name in names_in(m[1], data))


def _named_range(m: re.Match[str], data: Any) -> bool:
    names = names_in(m[1], data)
    ends = [means(data)[name] for name in names]
    return _are_level(data, names) and reads(m[2], min(ends)) and reads(m[3], max(ends))


def _counted_range(m: re.Match[str], data: Any) -> bool:
    count, every, high, name = int(m[1]), int(m[2]), m[4], m[5]
    ends = sorted(means(data).values())[::-1][:count]
    near = sum(above(last(data, name), last(data, other)) >= SURE for other in data.courses)
    far = sum(above(last(data, name), last(data, other)) < UNSURE for other in data.courses)
    return every == len(data.courses) and is_top(data, name) and reads(high, ends[0]) and near <= count <= every - far


def _failed(m: re.Match[str], data: Any, text: str) -> bool:
    """Check the numbers of stuck and diverged runs of those that the sentence has named so far."""
    before = text[: m.start()]
    names = names_in(before, data)[:1]
    if "end" in before and " of " not in before.partition(" end ")[0]:
        names = names_in(before.partition(" end ")[0], data)
    elif "end" in before or "too few" in before:  # only the number of runs is known
        return int(m[2]) % len(data.stuck[names[0]]) == 0 and int(m[1]) + int(m[3] or 0) <= int(m[2])
    lost = {name: ~np.isfinite(data.courses[name][-1]) for name in names}
    stuck = sum(int((data.stuck[name] & ~lost[name]).sum()) for name in names)
    diverged = sum(int(lost[name].sum()) for name in names)
    return (int(m[1]), int(m[3] or 0), int(m[2])) == (stuck, diverged, sum(map(len, lost.values())))


def _stuck_seeds(m: re.Match[str], data: Any, text: str) -> bool:
    return int(m[2]) == len(next(iter(data.stuck.values()))) and _failed(m, data, text)


def _ahead(m: re.Match[str], data: Any, text: str) -> bool:
    leader = names_in(text, data)[0]
    every = {n: np.where(np.isfinite(c), c, data.floor).mean(axis=-1) for n, c in data.courses.items()}
    others = np.max([course for name, course in every.items() if name != leader], axis=0)
    ahead = every[leader] - others > 1e-9 * np.maximum(1.0, np.abs(others))
    since = int(m[1])
    return bool(ahead[since:].all()) and (since == 0 or not ahead[since - 1])


def _arrivals(data: Any, name: str, line: float) -> np.ndarray:
    course = np.where(np.isfinite(data.courses[name]), data.courses[name], data.floor)
    past = course > line
    return np.where(past.any(axis=0), past.argmax(axis=0), np.inf)


def _past(m: re.Match[str], data: Any) -> bool:
    """Check the median update that passes a line known to its shown digits, and that no other median is earlier."""
    half, line = 0.51 * 10.0 ** -len(m[2].partition(".")[2]), number(m[2])
    middle = {}
    for name in data.courses:
        around = [_arrivals(data, name, line + off) for off in (-half, 0.0, half)]
        middle[name] = [float(np.sort(each)[(len(each) - 1) // 2]) for each in around]
    own = middle[m[1]]
    return own[0] <= number(m[3]) <= own[2] and all(own[0] <= other[2] for other in middle.values())


def _few(m: re.Match[str], data: Any) -> bool:
    return len(next(iter(data.stuck.values()))) < 8


def _unclear_first(m: re.Match[str], data: Any) -> bool:
    return number(m[1]) <= 0 <= number(m[2])


def _climbs(m: re.Match[str], data: Any) -> bool:
    return reads(m[2], _rise(data, m[1]).mean()) and number(m[2]) > 0 and is_climbing(data, m[1])


def _rise(data: Any, name: str) -> np.ndarray:
    course = np.where(np.isfinite(data.courses[name]), data.courses[name], data.floor)
    return np.asarray(course[-1] - course[-1 - max(round(0.1 * (len(course) - 1)), 1)])


def is_climbing(data: Any, name: str) -> bool:
    rise = _rise(data, name)
    return float((resampled(rise) <= 0).mean()) <= SURE and rise.mean() > 0 and len(rise) >= 8


def _lowest(m: re.Match[str], data: Any) -> bool:
    names, end = names_in(m[1], data), means(data)
    first = names[0]
    lost = int((~np.isfinite(data.courses[first][-1])).sum())
    diverged = (int(m[3] or 0), int(m[4] or len(last(data, first)))) == (lost, len(last(data, first)))
    near = all(above(last(data, name), last(data, first)) >= UNSURE for name in names)
    return end[first] <= min(end.values()) + 1e-9 and reads(m[2], end[first]) and diverged and near


def kl(data: Any) -> list[np.ndarray]:
    """Return the last KL of each seed at each point of the row, infinite where there is none."""
    return [np.where(np.isfinite(course[-1]), course[-1], np.inf) for course in data.kl.values()]


def _kl_range(m: re.Match[str], data: Any) -> bool:
    middle = [float(np.median(own)) for own in kl(data)]
    return reads(m[1], min(middle)) and reads(m[2], max(middle))


def _kl_ends(m: re.Match[str], data: Any, way: str) -> bool:
    first, end = kl(data)[0], kl(data)[-1]
    if not (reads(m[1], float(np.median(first))) and reads(m[m.re.groups], float(np.median(end)))):
        return False
    with np.errstate(invalid="ignore"):
        apart = np.where(end == first, 0.0, end - first)
    again = resampled(np.where(np.abs(apart) < 1e-9, 0.0, apart), median=True)
    up, down = float((again <= 0).mean()), float((again >= 0).mean())
    holds = {"rises": up <= SURE, "falls": down <= SURE, "unclear": min(up, down) >= UNSURE, "few": len(first) < 8}
    return holds.get(way, True)  # at a level that is shown twice


def _smoothest(m: re.Match[str], data: Any) -> bool:
    falls = {}
    for name in data.kl:
        course = np.where(np.isfinite(data.courses[name]), data.courses[name], data.floor)
        falls[name] = np.maximum(-np.diff(course, axis=0), 0.0).sum(axis=0)
    every = {name: own.mean() for name, own in falls.items()}
    ends = every[m[1]] <= min(every.values()) + 1e-9 and every[m[3]] >= max(every.values()) - 1e-9
    clear = all(above(own, falls[m[1]]) <= SURE for name, own in falls.items() if name != m[1])
    return bool(ends and clear and reads(m[2], every[m[1]]) and reads(m[4], every[m[3]])) and around(
        m, 5, falls[m[3]] - falls[m[1]]
    )


def _still(m: re.Match[str], data: Any) -> bool:
    names = names_in(m[2], data)
    return all(int(m[1]) == len(data.courses[name]) - 1 and is_climbing(data, name) for name in names) and bool(names)


def passing(data: Any) -> np.ndarray:
    above_half = data.max_prob > 0.5
    return np.where(above_half.any(axis=0), above_half.argmax(axis=0) + 1, np.inf)


def _passes(m: re.Match[str], data: Any, count: int, there: int, at: int) -> bool:
    """Check how many repeats pass one half, and the median and range of the updates, from group ``at`` on."""
    found = np.sort(passing(data)[np.isfinite(passing(data))])
    if (count, there) != (data.max_prob.shape[1], len(found)):
        return False
    shown = [number(m[place]) for place in range(at, at + 3)] if there else []
    return not there or shown == [found[(there - 1) // 2], found[0], found[-1]]


def _rewarded(m: re.Match[str], data: Any) -> bool:
    end = data.reward[-1]
    lost, lowest = ~np.isfinite(end), -np.inf if data.rewards is None else data.rewards.min()
    end = np.where(lost, lowest, end)
    shown = zip(m.groups()[1:5], (np.median(end), end.mean(), end.min(), end.max()), strict=True)
    said = (int(m[6] or 0), int(m[7] or len(end)))
    return int(m[1]) == len(data.reward) and all(reads(*pair) for pair in shown) and said == (lost.sum(), len(end))


def _wrong(m: re.Match[str], data: Any) -> bool:
    paid = np.stack([data.rewards[c][data.likeliest[:, c]] for c in range(len(data.rewards))])  # (C, S)
    missed = (paid < data.rewards.max(axis=-1)[:, None]).any(axis=0)
    return (int(m[1]), int(m[2])) == (int(missed.sum()), len(missed))


def _reached(m: re.Match[str], data: Any) -> bool:
    tables = [one.rewards for one in data.repeated.values()]
    if any(data.actions[best] != m[1] for table in tables for best in table.argmax(axis=-1)):
        return False
    for name, one in data.repeated.items():
        shown = re.search(re.escape(name) + rf" {NUMBER} \({NUMBER} to {NUMBER}\)", m[3])
        end = one.best_prob[int(m[2]) - 1]
        end = np.where(np.isfinite(end), end, 0.0)
        few = len(end) < 8 and bool((end > 1e-9).any())
        if shown is None or not reads(shown[1], end.mean()) or (few and shown[3] != "∞") or not around(shown, 2, end):
            return False
    return True


SAID: tuple[tuple[str, Callable[..., bool]], ...] = (
    (rf"({NAME}) leads ({NAME}) by {NUMBER} \[{NUMBER}, {NUMBER}\]", lambda m, d: _leads(m, d, m[1], m[2], 3)),
    (rf"highest at ({NAME}) \({NUMBER}\), by {NUMBER} \[{NUMBER}, {NUMBER}\] over ({NAME})",
     lambda m, d: _leads(m, d, m[1], m[6], 3) and reads(m[2], means(d)[m[1]])),
    (rf"((?:{NAME}(?:, | and )?)+) end level at {NUMBER}", _two_level),
    (rf"((?:{NAME}(?:, | and )?)+) end level at {NUMBER}(?=;|$)", _same_end),
    (rf"((?:{NAME}(?:, | and )?)+) end level at [\d.−]+, {NUMBER} \[", _apart),
    (rf"((?:{NAME}(?:, | and )?)+) end at {NUMBER} to {NUMBER}, too close to tell", _named_range),
    (rf"(\d+) of (\d+) end at {NUMBER} to {NUMBER}, too close to tell; ({NAME}) is highest", _counted_range),
    (rf"(\d+) of (\d+) end level at {NUMBER}()?, ({NAME}) highest",
     lambda m, d: reads(m[3], means(d)[m[5]]) and is_top(d, m[5])),
    (rf"too few to tell who leads; highest is ({NAME}), at {NUMBER}",
     lambda m, d: _few(m, d) and is_top(d, m[1]) and reads(m[2], means(d)[m[1]])),
    (r"(\d+) of (\d+) seeds? stuck(?:, (\d+) diverged)?", _stuck_seeds),
    (r"(\d+) of their (\d+) runs? stuck(?:, (\d+) diverged)?", _failed),
    (r"it is ahead from update (\d+) on", _ahead),
    (rf"({NAME}) is past {NUMBER} after {NUMBER} updates?", _past),
    (r"Too few seeds to tell", _few),
    (rf"Too close to tell: .* \[{NUMBER}, {NUMBER}\] earlier", _unclear_first),
    (rf"({NAME}) still climbs \(by {NUMBER} in the last tenth\)", _climbs),
    (rf"lowest at ((?:{NAME}(?:, | and )?)+) \({NUMBER}(?:; (\d+) of (\d+) diverged)?\)", _lowest),
    (rf"median KL lies between {NUMBER} and {NUMBER} nats|", lambda m, d: not m[0] or _kl_range(m, d)),
    (rf"over the row it lies between {NUMBER} and {NUMBER}", _kl_range),
    (rf"median KL falls from {NUMBER} to {NUMBER} nats", lambda m, d: _kl_ends(m, d, "falls")),
    (rf"median KL rises from {NUMBER} to {NUMBER} nats", lambda m, d: _kl_ends(m, d, "rises")),
    (rf"median KL stays at {NUMBER} nats", lambda m, d: _kl_ends(m, d, "same")),
    (rf"goes from {NUMBER} to {NUMBER} nats, too close to tell", lambda m, d: _kl_ends(m, d, "unclear")),
    (rf"goes from {NUMBER} to {NUMBER} nats; fewer than 8 seeds", lambda m, d: _kl_ends(m, d, "few")),
    (rf"smoothest is ({NAME}) \(all falls of the reward together: {NUMBER}\), the roughest ({NAME}) "
     rf"\({NUMBER}: \[{NUMBER}, {NUMBER}\] more\)", _smoothest),
    (rf"Still climbing after ([\d,]+) updates?: ((?:{NAME}(?:, )?)+)", _still),
    (r"Still climbing after [\d,]+ updates?: (\d+) of (\d+) places",
     lambda m, d: int(m[2]) == len(d.kl) and abs(int(m[1]) - sum(is_climbing(d, name) for name in d.kl)) <= 1),
    (rf"(\d+) of (\d+) repeats? pass(?:es)? .* median of these {NUMBER}, range {NUMBER} to {NUMBER}",
     lambda m, d: _passes(m, d, int(m[2]), int(m[1]), 3)),
    (rf"All (\d+) repeats pass π = 0.5: median update {NUMBER}, range {NUMBER} to {NUMBER}",
     lambda m, d: _passes(m, d, int(m[1]), int(m[1]), 2)),
    (r"None of (\d+) repeats? passes", lambda m, d: _passes(m, d, int(m[1]), 0, 0)),
    (r"This run passed it at update (\d+), later than (\d+) of them",
     lambda m, d: int(m[2]) == int((passing(d) < int(m[1])).sum())),
    (r"This run passed it at update (\d+); no repeat was earlier", lambda m, d: not (passing(d) < int(m[1])).any()),
    (r"(\d+) of (\d+) end on an action other than the best", _wrong),
    (rf"Mean reward at update ([\d,]+): median {NUMBER}, mean {NUMBER}, range {NUMBER} to {NUMBER}"
     r"(?:; (\d+) of (\d+) diverged)?", _rewarded),
    (r"π\((\S+)\) after ([\d,]+) updates?, mean and 95% interval: (.*)", _reached),
)  # fmt: skip # table
"""Patterns of words, and what must be true of the arrays. A check with three arguments also gets the whole text."""


def read(text: str, data: Any) -> Iterator[tuple[str, bool]]:
    """Yield each part of a headline that a pattern reads, and whether the arrays bear it out."""
    names = sorted(getattr(data, "courses", {"": 0}), key=len, reverse=True)
    for pattern, holds in SAID:
        for m in re.finditer(pattern.replace("NAME", "|".join(map(re.escape, names))), text):
            if m[0]:
                arguments = (m, data, text) if holds.__code__.co_argcount == 3 else (m, data)
                yield m[0], holds(*arguments)
