"""Choice of the engine that computes the character transformer: NumPy on the CPU, torch on a GPU."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from grpo_core.config import Settings
from grpo_core.lm.interface import NUMPY, TORCH, LanguagePolicy, engine_of
from grpo_core.record import Step

MakePolicy = Callable[[Settings], LanguagePolicy]


def torch_policy(settings: Settings) -> LanguagePolicy:
    """Create the model in torch.

    Raises:
        ImportError: torch is not installed, or cannot be loaded.
        SettingsError: the settings need something that is not available.
    """
    from grpo_core.lm.character_policy import CharacterPolicy

    return CharacterPolicy(settings)


def numpy_policy(settings: Settings) -> LanguagePolicy:
    """Create the model in NumPy.

    Raises:
        SettingsError: the settings need something that NumPy cannot do.
    """
    from grpo_core.lm.numpy_engine.numpy_policy import NumpyPolicy

    return NumpyPolicy(settings)


ENGINES: Mapping[str, MakePolicy] = {TORCH: torch_policy, NUMPY: numpy_policy}
"""Name of an engine -> function that creates its policy."""


def torch_is_there() -> bool:
    """Return whether torch is installed and can be loaded. The check imports torch."""
    try:
        import torch  # noqa: F401
    except (ImportError, OSError):  # OSError: a shared library's dependency is missing
        return False
    return True


def chosen_engine(settings: Settings, recorded: Step | None = None) -> str:
    """Choose the engine of a run, a key of :data:`ENGINES`.

    New runs on the CPU use NumPy, which is at least as fast as torch there and loads instantly
    (``benchmarks/bench_language.py``). Runs on other devices use torch, as do runs started with torch, if it can be
    loaded. Torch is imported only in these cases.

    Args:
        settings: settings of a run of the character transformer.
        recorded: the update to continue from or to answer questions about, if any.
    """
    wanted = settings.model.device != "cpu" or (recorded is not None and engine_of(recorded) == TORCH)
    return TORCH if wanted and torch_is_there() else NUMPY
