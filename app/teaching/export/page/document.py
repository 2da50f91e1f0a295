"""The HTML file: head, styles, script and data in one, with a policy that forbids loading anything external."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator, Sequence

from app.build import this_build
from app.teaching.export.page.explained import Explained, packed
from app.teaching.export.page.markup import Markup, element, section, table
from app.theme.tokens import THEMES, Theme
from grpo_core.assignments import described_settings
from grpo_core.config import Settings, language_settings
from grpo_core.errors import GrpoError
from grpo_core.shipped import resource
from grpo_core.text import language, plural, tr

POLICY = (
    "default-src 'none'; style-src '{style}'; script-src '{program}'; img-src data:; base-uri 'none'; "
    "form-action 'none'"
)
"""The content security policy. Only the inline style, script and pictures are allowed."""
LARGEST = 3_000_000
"""Size limit of a page in bytes."""
COLOURS = (
    "policy",
    "push_down",
    "old",
    "reference",
    "reward",
    "kl",
    "entropy",
    "ground",
    "surface",
    "border",
    "text",
    "muted",
)
INKS = ("policy", "push_down")
"""Colours of the theme that are also used for text."""


def document(title: str, body: Sequence[Markup | None], explained: Explained, questions: object = ()) -> bytes:
    """Return the page: ``body`` below ``title``, the explanations, and the answers to its ``questions``.

    Raises:
        GrpoError: the page would have 3 MB or more.
    """
    program = resource("page/page.js").read_text(encoding="utf-8")
    data = explained.packed()
    return html_page(
        title,
        [*body, _cut(explained)],
        program,
        largest=LARGEST,
        without_script=tr(
            "This browser does not run scripts in pages: everything can be read, but no number can be opened."
        ),
        below=(
            _explanation(),
            element("script", Markup(data), type="text/plain", id="explained"),
            element("script", Markup(packed(questions)), type="text/plain", id="questions"),
        ),
    )


def html_page(
    title: str,
    body: Sequence[Markup | None],
    program: str,
    *,
    largest: int,
    without_script: str,
    below: Sequence[Markup] = (),
) -> bytes:
    """Return a page with a script: ``body`` below ``title``, and ``below`` outside the main part.

    ``without_script`` is shown by browsers that run no scripts.

    Raises:
        GrpoError: the page would have ``largest`` bytes or more.
    """
    style = _colours() + resource("page/page.css").read_text(encoding="utf-8")
    policy = POLICY.format(style=_hash(style), program=_hash(program))
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=policy),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("meta", name="generator", content=str(this_build())),
        element("title", title),
        element("style", Markup(style)),
    )
    whole = element(
        "html",
        head,
        element(
            "body",
            element("a", tr("Skip to the content"), href="#content", class_="skip"),
            element("main", element("h1", title), *body, id="content"),
            element("noscript", element("p", without_script)),
            *below,
            element("script", Markup(program)),
        ),
        lang=language(),
    )
    written = ("<!DOCTYPE html>\n" + whole + "\n").encode("utf-8", "replace")
    if len(written) >= largest:
        raise GrpoError(
            tr("The page would have {size:.1f} MB, but {most:g} MB is the most; choose fewer updates.").format(
                size=len(written) / 1e6, most=largest / 1e6
            )
        )
    return written


def _hash(text: str) -> str:
    """Return the source expression that allows exactly this style or script."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode("ascii")


def _colours() -> str:
    """Return the window's colours, light and dark, as CSS custom properties."""
    light, dark = (":root{" + ";".join(_properties(THEMES[name])) + "}" for name in ("light", "dark"))
    return light + "@media (prefers-color-scheme:dark){" + dark + "}\n"


def _properties(theme: Theme) -> Iterator[str]:
    for name in COLOURS:
        yield "--" + name.replace("_", "-") + ":" + theme.hex(name)
    for name in INKS:
        yield "--" + name.replace("_", "-") + "-ink:" + theme.ink(name).name()


def _cut(explained: Explained) -> Markup | None:
    """Return a sentence about the numbers that the page does not explain.

    Call this after all explanations have been packed.
    """
    if not explained.cut:
        return None
    sentence = plural(
        "{count:,} number further down is shown with its value, but not explained: the page has no more space.",
        "{count:,} numbers further down are shown with their values, but not explained: the page has no more space.",
        explained.cut,
    )
    return element("p", sentence.format(count=explained.cut), class_="muted")


def _explanation() -> Markup:
    """Return the empty area in which a number is explained."""
    return element(
        "aside",
        element(
            "div",
            element("button", tr("‹ Back"), type="button", id="back", hidden=True),
            element("button", tr("Close"), type="button", id="close"),
            class_="bar",
        ),
        element("h2", "", id="explained-title", tabindex=-1),
        element("p", "", id="formula", class_="formula"),
        element("p", "", id="values", class_="formula"),
        element("p", element("output", "", id="value"), " ", element("span", "", id="verdict")),
        element("p", "", id="comparison", class_="muted"),
        element("p", "", id="note"),
        element("h3", tr("Comes from"), id="inputs-title"),
        element("ul", "", id="inputs"),
        element("p", "", id="more", class_="muted"),
        element("p", "", id="source", class_="muted"),
        id="explanation",
        hidden=True,
        aria_labelledby="explained-title",
        role="region",
    )


def settings_section(settings: Settings) -> Markup:
    """Return a section with all settings of a run, marking those that differ from the defaults."""
    usual = language_settings() if settings.is_language else Settings()
    changed = set(usual.differences(settings))
    rows = []
    for path, about, value in described_settings(settings):
        mark = element("strong", _written(value)) if path in changed else _written(value)
        rows.append(
            element(
                "tr",
                element("th", about.title, scope="row", title=about.help),
                element("td", path, class_="mono"),
                element("td", mark),
            )
        )
    heads = tr("Setting"), tr("Name"), tr("Value")
    whole = table(tr("Settings; those that differ from a new run are bold"), heads, rows)
    return element("details", element("summary", element("h2", tr("Settings"))), whole, class_="settings")


def _written(value: object) -> str:
    if isinstance(value, tuple):
        return ", ".join(map(_written, value))
    if isinstance(value, bool):
        return tr("on") if value else tr("off")
    return tr("none", "value") if value is None else str(value)


def command_section(words: str, note: str = "") -> Markup:
    """Return a section with the command that computes the run again, and a note."""
    code = element("pre", element("code", words), tabindex=0) if words else None
    return section("again", tr("Compute it again"), code, element("p", note) if note else None)
