"""HTML in which all text and attributes are escaped. Only the results of :func:`element` count as markup."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable
from functools import lru_cache

from app.formula.plain import plain_text
from app.formula.render import formula_library

VOID = ("br", "hr", "input", "line", "meta", "polyline", "rect")
"""Elements that have no content and no end tag."""
_ENTITY = re.compile("&#x([0-9A-F]+);")


class Markup(str):
    """Text that is already HTML."""

    __slots__ = ()


def element(name: str, /, *children: str | None, **attributes: object) -> Markup:
    """Return an element that contains text and other elements.

    Args:
        name: name of the element.
        children: text, which is escaped, and markup, which is not; None is omitted.
        attributes: attributes by name, with an underscore for a hyphen or after a Python keyword; True means no value;
            None and False are omitted.
    """
    written = "".join(_attribute(key.rstrip("_").replace("_", "-"), value) for key, value in attributes.items())
    if name in VOID:
        return Markup(f"<{name}{written}>" if name in ("br", "hr", "input", "meta") else f"<{name}{written}/>")
    return Markup(f"<{name}{written}>{joined(children)}</{name}>")


def joined(children: Iterable[str | None]) -> Markup:
    """Return text and markup concatenated. The text is escaped."""
    return Markup("".join(child if isinstance(child, Markup) else escaped(child) for child in children if child))


def escaped(text: str) -> str:
    """Return ``text`` escaped for HTML, with characters that are not allowed in documents replaced."""
    return html.escape("".join(c if c.isprintable() or c == "\n" else "\N{REPLACEMENT CHARACTER}" for c in text))


def _attribute(name: str, value: object) -> str:
    if value is None or value is False:
        return ""
    return f" {name}" if value is True else f' {name}="{escaped(str(value))}"'


@lru_cache(maxsize=1 << 16)
def formula(latex: str) -> Markup:
    """Return ``latex`` as MathML, which browsers draw and screen readers speak, or as one line of text on failure."""
    if formula_library() is None:
        return element("span", plain_text(latex))
    from latex2mathml.converter import convert

    try:
        source = convert(latex)
    # its parser raises IndexError, KeyError and its own errors, depending on the mistake
    except Exception:
        return element("span", plain_text(latex))
    source = source.replace(' xmlns="http://www.w3.org/1998/Math/MathML"', "").replace(' display="inline"', "")
    return Markup(_ENTITY.sub(_letter, source))


def _letter(match: re.Match[str]) -> str:
    return html.escape(chr(int(match[1], 16)))
