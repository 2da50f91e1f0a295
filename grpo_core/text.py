"""The one door of every sentence that a user reads: ``tr``.

``lupdate`` collects what stands in calls of ``tr`` (``python -m tools.catalogue``): a call holds a literal, never
an f-string: values are put in afterwards, by name, and a translator may move them::

    tr("{count:,} updates of {run}").format(count=count, run=title)

What is drawn from a formula stays as it is in any language: symbols, numbers, tokens, identifiers of settings.
"""

from __future__ import annotations

from collections.abc import Callable


def _as_written(text: str) -> str:
    return text


_translate: Callable[[str], str] = _as_written


def tr(text: str) -> str:
    """``text`` in the language chosen at the start; as written where there is no translation."""
    return _translate(text)


def use(translate: Callable[[str], str] | None) -> None:
    """From now on ``tr`` asks ``translate``; None: texts stay as they are written.

    Constants of modules are translated when the module is imported: the language is chosen first.
    """
    global _translate
    _translate = translate or _as_written
