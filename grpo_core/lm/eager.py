"""Use of torch's optimizers without importing torch's compiler, which takes a second and is not used.

torch 2.13 marks some methods of its optimizers as not to be compiled, and imports the compiler to do so when they are
first called. If a later torch does this differently, only that second is lost.
"""

from __future__ import annotations

import inspect

import torch

MARKED = ("add_param_group", "load_state_dict", "state_dict", "zero_grad")


def spare_the_compiler() -> None:
    """Unwrap the optimizers' methods, so that they do not import the compiler. Call before creating the first
    optimizer.
    """
    for name in MARKED:
        method = inspect.unwrap(getattr(torch.optim.Optimizer, name))
        if not hasattr(method, "__dynamo_disable"):
            setattr(method, "__dynamo_disable", method)


@torch.no_grad()
def step(optimizer: torch.optim.Optimizer) -> None:
    """Call ``optimizer.step()``, bypassing its hooks and the profiler."""
    inspect.unwrap(type(optimizer).step)(optimizer)
