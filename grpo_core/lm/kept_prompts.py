"""Cache of the user's prompts, which are read once as long as their file does not change.

Reading a large file takes seconds. Code that must not block, such as the GUI thread, checks whether the prompts are in
the cache, and otherwise has another thread read them first.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from grpo_core.config import LanguageTask, Settings
from grpo_core.errors import Cancelled, GrpoError
from grpo_core.lm.prompt_file import Prompts, Read, located, read_prompts, table_for

SMALL = 64_000
"""Maximum size in bytes of a file that can be read within one or two frames."""


class _Kept:
    """Cached result of reading one file: its prompts or an error message, both empty at first."""

    prompts: Prompts | None = None
    error: str = ""


@lru_cache(maxsize=4)
def _kept(path: str, state: tuple[int, ...], checker: str, longest: int | None) -> _Kept:
    """Return the cache entry for one state of a file. A changed file gets a new entry."""
    return _Kept()


def prompts_of(
    task: LanguageTask, context: int | None, poll: Callable[[], object] = lambda: None, read: Read | None = None
) -> Prompts:
    """Return the prompts of the task's file, without duplicates.

    Args:
        context: maximum number of tokens of prompt and completion together in the character model; None for a model
            whose tokenizer reads any text.
        poll: called before each row; may raise to stop.
        read: reads the file; by default here or, if that needs other parsers, in a process for untrusted files.

    Raises:
        GrpoError: the file cannot be used.
    """
    kept = _place(task, context)
    if kept.error:
        raise GrpoError(kept.error)
    if kept.prompts is None:
        try:
            path = located(task.file)
            table = table_for(path)
            read = read or (read_prompts if table is None else table.read)
            kept.prompts = read(path, checker=task.checker, longest=_longest(task, context), poll=poll)
        except Cancelled:
            raise
        except GrpoError as error:
            kept.error = str(error)
            raise
    return kept.prompts


def at_hand(settings: Settings) -> bool:
    """Return whether the prompts of a run under ``settings`` can be returned, or rejected, without blocking."""
    if not settings.is_language or not settings.language.from_file:
        return True
    path = located(settings.language.file)
    try:
        small = path.expanduser().stat().st_size <= SMALL
    except (OSError, RuntimeError, ValueError):
        return True
    kept = _place(settings.language, settings.model.longest_text)
    quick = small and settings.language.checker != "regex" and table_for(path) is None
    return bool(kept.error) or kept.prompts is not None or quick


def left_out(settings: Settings) -> str:
    """Return a message about prompts that cannot be used. Empty if there are none, or they were not read."""
    if not settings.is_language or not settings.language.from_file:
        return ""
    kept = _place(settings.language, settings.model.longest_text)
    return "" if kept.prompts is None else kept.prompts.left_out


def read_ahead(settings: Settings, poll: Callable[[], object], read: Read | None = None) -> None:
    """Read the prompts of a run under ``settings`` into the cache. An error in them is cached too.

    ``read`` reads the file, as :func:`grpo_core.lm.prompt_file.read_prompts` does. ``poll`` may raise to stop.
    """
    if at_hand(settings):
        return
    try:
        prompts_of(settings.language, settings.model.longest_text, poll, read)
    except Cancelled:
        raise
    except GrpoError:
        return  # raised again for whoever needs the prompts


def _longest(task: LanguageTask, context: int | None) -> int | None:
    return None if context is None else context - task.max_tokens


def _place(task: LanguageTask, context: int | None) -> _Kept:
    try:
        path = located(task.file).expanduser().absolute()
        status = path.stat()
    except (OSError, RuntimeError, ValueError):
        return _Kept()  # reading the file gives the error
    state = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)
    return _kept(str(path), state, task.checker, _longest(task, context))
