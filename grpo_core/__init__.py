"""GRPO Lab's core: the loss, the learners and the record of a run. It does not need Qt; importing it imports only NumPy
and array-api-compat.

``__all__`` lists the public names (docs/library.md); everything else can change with any version.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from grpo_core import advantages
    from grpo_core.config import PRESETS, Objective, Preset
    from grpo_core.errors import GrpoError, SettingsError, ShapeError
    from grpo_core.objective import Terms, evaluate, gradient

__version__ = "0.4.0"

__all__ = [
    "PRESETS",
    "GrpoError",
    "Objective",
    "Preset",
    "SettingsError",
    "ShapeError",
    "Terms",
    "__version__",
    "advantages",
    "evaluate",
    "gradient",
]

_HOMES = {
    **dict.fromkeys(("PRESETS", "Objective", "Preset"), "config"),
    **dict.fromkeys(("GrpoError", "SettingsError", "ShapeError"), "errors"),
    **dict.fromkeys(("Terms", "evaluate", "gradient"), "objective"),
}
_MODULES = ("advantages",)


def __getattr__(name: str) -> Any:
    """Import a public name on first access, so that reading the version alone does not import NumPy."""
    from importlib import import_module

    if name in _MODULES:
        return import_module(f"grpo_core.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module “grpo_core” has no attribute “{name}”")
    return getattr(import_module(f"grpo_core.{_HOMES[name]}"), name)
