"""Content that no program has written: random bytes, damaged files, and files with odd values."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

ODD: SearchStrategy[Any] = st.one_of(
    st.none(),
    st.booleans(),
    st.sampled_from([0, 1, -1, 2**31, -(2**63), 2**63, 10**400, 0.5, -0.0, 1e308, float("nan"), float("inf")]),
    st.sampled_from(["", "0", "nan", "\0", "\ud800", "../..", "’", "a" * 5000, "[" * 2000, "1e999", "٣"]),
    st.integers(),
    st.floats(),
    st.text(max_size=20),
)
JSON = st.recursive(
    ODD, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4)
)
"""JSON values, including types that are not expected."""


@st.composite
def damaged(draw: DrawFn, whole: bytes) -> bytes:
    """Draw ``whole`` with bytes flipped, a stretch cut out, doubled or replaced, or the end missing; sometimes
    random bytes.
    """
    if draw(st.integers(0, 9)) == 0:
        return draw(st.binary(max_size=400))
    data = bytearray(whole)
    for _ in range(draw(st.integers(1, 3))):
        if not data:
            break
        start = draw(st.integers(0, len(data) - 1))
        stop = min(start + draw(st.integers(1, 300)), len(data))
        kind = draw(st.sampled_from(["flip", "cut", "double", "replace", "end"]))
        if kind == "flip":
            data[start] ^= draw(st.integers(1, 255))
        elif kind == "cut":
            del data[start:stop]
        elif kind == "double":
            data[start:start] = data[start:stop]
        elif kind == "replace":
            data[start:stop] = draw(st.binary(min_size=stop - start, max_size=stop - start))
        else:
            del data[start:]
    return bytes(data)


@st.composite
def odd_json(draw: DrawFn, whole: Any) -> str:
    """Draw the JSON value ``whole`` with some parts replaced, removed or duplicated."""
    value = json.loads(json.dumps(whole))
    for _ in range(draw(st.integers(1, 3))):
        value = _changed(draw, value)
    return json.dumps(value)


def _changed(draw: DrawFn, value: Any) -> Any:
    """Return ``value`` with one part changed, chosen at random on the way down."""
    if isinstance(value, dict) and value and draw(st.integers(0, 7)):
        key = draw(st.sampled_from(sorted(value)))
        kind = draw(st.sampled_from(["within", "within", "gone", "more"]))
        if kind == "gone":
            return {name: item for name, item in value.items() if name != key}
        if kind == "more":
            return {**value, draw(st.text(max_size=8)): draw(JSON)}
        return {**value, key: _changed(draw, value[key])}
    if isinstance(value, list) and value and draw(st.integers(0, 7)):
        place = draw(st.integers(0, len(value) - 1))
        return [*value[:place], _changed(draw, value[place]), *value[place + draw(st.integers(0, 2)) :]]
    return draw(JSON)
