"""HTML in which all text and attributes are escaped. Only the results of :func:`element` count as markup."""

from __future__ import annotations

import html
import unicodedata
from collections.abc import Iterable
from functools import lru_cache
from xml.etree.ElementTree import Element

from app.formula.plain import plain_text
from app.formula.render import formula_library

MATHML = frozenset(
    (
        "math", "menclose", "mfrac", "mi", "mn", "mo", "mover", "mpadded", "mphantom", "mroot", "mrow", "mspace",
        "msqrt", "mstyle", "msub", "msubsup", "msup", "mtable", "mtd", "mtext", "mtr", "munder", "munderover",
    )
)  # fmt: skip # names, several per line
MATHML_ATTRIBUTES = frozenset(
    (
        "accent", "columnalign", "columnlines", "columnspacing", "depth", "displaystyle", "fence", "form", "height",
        "largeop", "linebreak", "linethickness", "lspace", "mathbackground", "mathcolor", "mathvariant", "maxsize",
        "minsize", "movablelimits", "notation", "rowlines", "rowspacing", "rspace", "scriptlevel", "separator",
        "stretchy", "voffset", "width",
    )
)  # fmt: skip # names, several per line
"""The elements and attributes of a formula; others, such as ``href``, ``id`` and ``style``, make it plain text."""
PLAIN_VOID = ("br", "hr", "img", "input", "meta")
VOID = (*PLAIN_VOID, "line", "polyline", "rect")
"""Elements that have no content and no end tag."""


class Markup(str):
    """Text that is already HTML."""

    __slots__ = ()


def element(name: str, /, *children: str | None, **attributes: object) -> Markup:
    """Return an element that contains text and other elements.

    Args:
        children: text, which is escaped, and markup, which is not; None is omitted.
        attributes: attributes by name, with an underscore for a hyphen or after a Python keyword; True means no value;
            None and False are omitted.
    """
    written = "".join(_attribute(key.rstrip("_").replace("_", "-"), value) for key, value in attributes.items())
    if name in VOID:
        return Markup(f"<{name}{written}>" if name in PLAIN_VOID else f"<{name}{written}/>")
    return Markup(f"<{name}{written}>{joined(children)}</{name}>")


def section(name: str, title: str, *children: str | None, **attributes: object) -> Markup:
    """Return a section with a heading, whose id is ``name``."""
    return element("section", element("h2", title, id=name), *children, aria_labelledby=name, **attributes)


def table(
    caption: str, heads: Iterable[str], rows: Iterable[Markup] = (), *, scrolls: bool = False, **attributes: object
) -> Markup:
    """Return a table. ``heads`` are texts or complete cells. If it ``scrolls``, it can be wider than the page."""
    cells = (head if isinstance(head, Markup) else element("th", head, scope="col") for head in heads)
    parts = element("caption", caption), element("thead", element("tr", *cells)), element("tbody", *rows)
    whole = element("table", *parts, **attributes)
    if not scrolls:
        return whole
    return element("div", whole, class_="scroll", tabindex=0, role="region", aria_label=caption)


def joined(children: Iterable[str | None]) -> Markup:
    """Return text and markup concatenated. The text is escaped."""
    return Markup("".join(child if isinstance(child, Markup) else escaped(child) for child in children if child))


def escaped(text: str) -> str:
    """Return ``text`` escaped for HTML, with characters that are not allowed in documents replaced."""
    return html.escape("".join(c if _is_allowed(c) else "\N{REPLACEMENT CHARACTER}" for c in text))


def _is_allowed(character: str) -> bool:
    return character.isprintable() or character == "\n" or unicodedata.category(character) == "Zs"


def _attribute(name: str, value: object) -> str:
    if value is None or value is False:
        return ""
    return f" {name}" if value is True else f' {name}="{escaped(str(value))}"'


@lru_cache(maxsize=1 << 16)
def formula(latex: str) -> Markup:
    """Return ``latex`` as MathML, which browsers draw and screen readers speak, or as one line of text on failure."""
    if formula_library() is None:
        return element("span", plain_text(latex))
    from latex2mathml.converter import convert_to_element

    try:
        return element("math", *map(_mathml, convert_to_element(latex)))
    # its parser raises IndexError, KeyError and its own errors, depending on the mistake
    except Exception:
        return element("span", plain_text(latex))


def _mathml(node: Element) -> Markup:
    """Return an element of a formula, whose text contains character references, as MathML.

    Raises:
        ValueError: it is not one of :data:`MATHML`, or has an attribute that is not in :data:`MATHML_ATTRIBUTES`.
    """
    if node.tag not in MATHML or not node.attrib.keys() <= MATHML_ATTRIBUTES:
        raise ValueError(f"<{node.tag}> with {[*node.attrib]} is not part of a formula")
    return element(node.tag, html.unescape(node.text or ""), *map(_mathml, node), **node.attrib)
