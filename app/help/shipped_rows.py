"""Shipped tables of texts as dataclasses. They come with the program, so tests check them and the program does not."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from grpo_core.shipped import resource
from grpo_core.text import tr

Row = TypeVar("Row")


def parsed(name: str) -> Any:
    """Return the content of a shipped TOML or JSON file."""
    text = resource(name).read_text("utf-8")
    return json.loads(text) if name.endswith(".json") else tomllib.loads(text)


def rows(kind: type[Row], tables: Iterable[Mapping[str, Any]], translated: tuple[str, ...]) -> tuple[Row, ...]:
    """Return a ``kind`` for each table. The fields ``translated`` are shown in the user's language."""
    return tuple(
        kind(**{name: tr(value) if name in translated else tuple(value) if isinstance(value, list) else value
                for name, value in table.items()})
        for table in tables
    )  # fmt: skip
