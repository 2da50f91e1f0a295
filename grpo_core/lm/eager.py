"""torch's optimizers without torch's compiler: nothing here is compiled, and importing the compiler takes a second.

torch 2.13 marks some methods of its optimizers as not to be compiled, and imports the compiler to do so when they are
first called. A later torch that does it otherwise is no worse for this file: the second is back.
"""

from __future__ import annotations

import inspect

import torch

MARKED = ("add_param_group", "load_state_dict", "state_dict", "zero_grad")


def spare_the_compiler() -> None:
    """Call this before the first optimizer is made. The methods are then called as they are."""
    for name in MARKED:
        method = inspect.unwrap(getattr(torch.optim.Optimizer, name))
        if not hasattr(method, "__dynamo_disable"):
            setattr(method, "__dynamo_disable", method)


@torch.no_grad()
def step(optimizer: torch.optim.Optimizer) -> None:
    """``optimizer.step()``, without hooks and profiler."""
    inspect.unwrap(type(optimizer).step)(optimizer)
