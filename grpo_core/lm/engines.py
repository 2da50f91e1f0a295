"""What computes the character transformer: torch where it is installed, else NumPy, which every copy has."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from grpo_core.config import Settings
from grpo_core.lm.interface import LanguagePolicy, Scores
from grpo_core.lm.recorded_engine import NUMPY, TORCH

CharacterPolicy = LanguagePolicy[Any, Scores]
MakePolicy = Callable[[Settings], CharacterPolicy]


def torch_policy(settings: Settings) -> CharacterPolicy:
    """The model in torch.

    Raises:
        ImportError: torch is not installed, or cannot be loaded.
        SettingsError: the settings ask for something that is not there.
    """
    from grpo_core.lm.character_policy import CharacterPolicy as TorchPolicy

    return TorchPolicy(settings)


def numpy_policy(settings: Settings) -> CharacterPolicy:
    """The model in NumPy.

    Raises:
        SettingsError: the settings ask for something that NumPy cannot do.
    """
    from grpo_core.lm.numpy_engine.policy import NumpyPolicy

    return NumpyPolicy(settings)


ENGINES: Mapping[str, MakePolicy] = {TORCH: torch_policy, NUMPY: numpy_policy}
"""Name -> what makes a policy."""


def present_engine() -> str:
    """The engine of a model that begins here, a key of :data:`ENGINES`. Imports torch where it is installed."""
    try:
        import torch  # noqa: F401
    except (ImportError, OSError):  # the latter of a library that lacks another
        return NUMPY
    return TORCH


def character_policy(settings: Settings) -> CharacterPolicy:
    """The program's own model at its start, its reference and its optimizer.

    Raises:
        SettingsError: the settings ask for something that is not there.
    """
    return ENGINES[present_engine()](settings)
