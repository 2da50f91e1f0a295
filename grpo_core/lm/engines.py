"""Choice of the engine that computes the character transformer: NumPy on the CPU, torch on a GPU."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from grpo_core.config import Settings
from grpo_core.lm.interface import LanguagePolicy, Scores
from grpo_core.lm.recorded_engine import NUMPY, TORCH, engine_of
from grpo_core.record import Step

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
    from grpo_core.lm.numpy_engine.numpy_policy import NumpyPolicy

    return NumpyPolicy(settings)


ENGINES: Mapping[str, MakePolicy] = {TORCH: torch_policy, NUMPY: numpy_policy}
"""Name -> what makes a policy."""


def torch_is_there() -> bool:
    """Whether torch is installed and can be loaded. Imports it where it is installed."""
    try:
        import torch  # noqa: F401
    except (ImportError, OSError):  # the latter of a library that lacks another
        return False
    return True


def chosen_engine(settings: Settings, recorded: Step | None = None) -> str:
    """The engine of a run, a key of :data:`ENGINES`.

    NumPy computes what begins on the CPU, where it is as fast as torch or faster and loads in no time
    (``benchmarks/bench_language.py``); torch what is to be computed elsewhere, and what it has computed so far, if it
    can be loaded. It is imported only then.

    Args:
        settings: of a run of the character transformer.
        recorded: an update of it that is gone on from or asked about; None where there is none.
    """
    wanted = settings.model.device != "cpu" or (recorded is not None and engine_of(recorded) == TORCH)
    return TORCH if wanted and torch_is_there() else NUMPY
