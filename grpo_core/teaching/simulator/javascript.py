"""Recorded functions as JavaScript: each operation is a call of a function of ``resources/page/arrays.js``."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from grpo_core.teaching.simulator.recording import Argument, Recording, Shape


def function(compute: Callable[..., Mapping[str, Any]], inputs: Mapping[str, Shape]) -> str:
    """Return ``compute`` as a JavaScript function from an object of arrays to an object of arrays.

    Args:
        compute: takes recorded arrays as keywords and returns arrays by name.
        inputs: shapes of its arguments.
    """
    tape = Recording()
    results = {
        name: array.name for name, array in compute(**{name: tape.array(name, inputs[name]) for name in inputs}).items()
    }
    needed = set(results.values())
    for name, operation in reversed(tape.operations.items()):
        if name in needed:
            needed.update(one for one in operation.arguments if isinstance(one, str))
    lines = [
        f"{name}={operation.function}({','.join(map(_written, operation.arguments))})"
        for name, operation in tape.operations.items()
        if name in needed
    ]
    given = ",".join(name for name in inputs if name in needed)
    made = ",".join(f"{name}:{value}" for name, value in results.items())
    computed = f"const {','.join(lines)};" if lines else ""
    return f"({{{given}}})=>{{{computed}return{{{made}}}}}"


def _written(argument: Argument) -> str:
    if isinstance(argument, str):
        return argument
    if isinstance(argument, tuple):
        return "[" + ",".join(map(str, argument)) + "]"
    if math.isinf(argument):
        return "Infinity" if argument > 0 else "-Infinity"
    return repr(float(argument)).removesuffix(".0")
