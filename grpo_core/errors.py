"""Exceptions of the core. Each message says what was wrong, where, and what was expected."""

from __future__ import annotations

from grpo_core.text import tr

LONGEST_SHOWN = 200
"""Maximum number of characters of a value that a message quotes."""


def shortened(value: object, longest: int = LONGEST_SHOWN) -> str:
    """Shorten ``value`` for quoting in a message. A string from a file can be as long as the file."""
    try:
        text = str(value)
    except ValueError:  # an integer with more digits than Python prints
        return tr("a number with thousands of digits")
    return text if len(text) <= longest else text[: longest - 1] + "…"


_SHORT_OF_MEMORY = ("out of memory", "ALLOC_FAILED", "can't allocate memory")
"""Parts of torch's messages about a lack of memory: of its allocators, of cuBLAS and cuDNN, and of the CPU."""


def is_out_of_memory(error: BaseException) -> bool:
    """Return whether ``error`` reports a lack of memory, in Python, NumPy or torch, on any device. Not every such error
    of torch is a ``torch.OutOfMemoryError``.
    """
    told = isinstance(error, RuntimeError) and any(part in str(error) for part in _SHORT_OF_MEMORY)
    return told or isinstance(error, MemoryError)


class GrpoError(Exception):
    """Base class of all errors that the core raises deliberately. Its message can be shown to the user."""


class SettingsError(GrpoError):
    """A setting that cannot be used.

    Attributes:
        field: dotted name of the field, such as ``objective.beta``.
        allowed: the allowed values, in words.
    """

    def __init__(self, field: str, value: object, allowed: str) -> None:
        self.field = field
        self.value = value
        self.allowed = allowed
        shown = shortened(value)
        shown = f"“{shown}”" if isinstance(value, str) else shown
        super().__init__(
            tr("{field} cannot be {shown}: {allowed}.").format(field=shortened(field), shown=shown, allowed=allowed)
        )

    def within(self, outer: str) -> SettingsError:
        """Prefix the field's name with ``outer``, the object that contains the settings."""
        return SettingsError(f"{outer}.{self.field}", self.value, self.allowed)


class ShapeError(GrpoError):
    """An array whose shape does not fit the others in the same call.

    Attributes:
        argument: its parameter name.
        wanted: the expected shape, in words.
    """

    def __init__(self, argument: str, shape: tuple[int, ...], wanted: str) -> None:
        self.argument = argument
        self.shape = tuple(shape)
        self.wanted = wanted
        super().__init__(
            tr("{argument} cannot have the shape {shape}: it must be {wanted}.").format(
                argument=argument, shape=self.shape, wanted=wanted
            )
        )


class RunFileError(GrpoError):
    """Raised if a run file cannot be read or written. The message names the file and a remedy."""


class NonFiniteError(GrpoError):
    """Raised if a number of an update is not finite.

    Attributes:
        step: the update that was being computed, counted from 1.
        what: name of the first non-finite quantity.
    """

    def __init__(self, step: int, what: str) -> None:
        self.step = step
        self.what = what
        super().__init__(
            tr(
                "Update {step}: {what} is not a finite number. The run is at update {head}; lower the learning rate, "
                "or branch from an earlier update."
            ).format(step=step, what=what, head=step - 1)
        )


class Cancelled(GrpoError):  # noqa: N818 - being cancelled is no error
    """Raised by a ``poll`` to stop the work that calls it. A learner is then at its last finished update."""


class NotRecordedError(GrpoError):
    """The source of a recorded run does not contain the requested data. The message says which."""
