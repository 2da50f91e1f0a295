"""Settings of a trainer in a recipe that lies beside its files: YAML, TOML or JSON."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from grpo_core.errors import shortened
from grpo_core.parsing import from_json, from_toml
from grpo_core.regular_file import read_limited
from grpo_core.text import tr

LARGEST = 1 << 18
"""Maximum size of a recipe in bytes."""
MOST_ALIASES, DEEPEST = 20, 100
"""Maximum number of aliases of a YAML file, since a few can stand for billions of values, and its maximum depth."""
MOST_FILES, MOST_VALUES = 200, 5000
"""Maximum numbers of files looked at and of settings taken."""
YAML = (".yaml", ".yml")
REFERENCE = re.compile(r"^\$\{([\w.]+)\}$")
"""Pattern of a reference to another setting, as OmegaConf writes it."""


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """The settings of a recipe.

    Attributes:
        path: the file; None if there is none.
        values: dotted name -> value, for values that are not objects.
        notes: sentences about files that could not be read.
    """

    path: Path | None = None
    values: dict[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def beside(folders: list[Path], known: Callable[[dict[str, Any]], bool]) -> Recipe:
    """Return the first recipe in ``folders`` for which ``known`` returns True, given its settings by dotted name."""
    notes: list[str] = []
    for path in _candidates(folders):
        try:
            values = _flat(parsed(path))
        except ImportError:
            notes.append(
                tr("{name} was not read, because YAML needs PyYAML: pip install pyyaml.").format(name=path.name)
            )
            continue
        except (OSError, ValueError, RecursionError) as error:
            notes.append(
                tr("{name} cannot be read as a recipe ({error}).").format(name=path.name, error=shortened(str(error)))
            )
            continue
        if known(values):
            return Recipe(path=path, values=values, notes=tuple(notes))
    return Recipe(notes=tuple(notes))


def parsed(path: Path, largest: int = LARGEST) -> Any:
    """Parse a recipe of at most ``largest`` bytes by its suffix.

    Raises:
        ImportError: it is YAML, and PyYAML is not installed.
        OSError, ValueError: it cannot be read or parsed, or exceeds a limit.
    """
    content = read_limited(path, largest)
    if content is None:
        raise ValueError(tr("it is longer than {most:,} bytes").format(most=largest))
    match path.suffix.lower():
        case ".json":
            return from_json(content)
        case ".toml":
            return from_toml(content.decode("utf-8"))
        case ".yaml" | ".yml":
            return from_yaml(content.decode("utf-8"))
        case suffix:
            raise ValueError(suffix)


def from_yaml(text: str) -> Any:
    """Parse YAML that creates only plain values.

    Raises:
        ImportError: PyYAML is not installed.
        ValueError: it is not YAML, is nested too deeply, or has too many aliases.
    """
    import yaml

    aliases = depth = 0
    try:
        for event in yaml.parse(text, Loader=yaml.SafeLoader):
            aliases += isinstance(event, yaml.AliasEvent)
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if aliases > MOST_ALIASES or depth > DEEPEST:
                raise ValueError(tr("it has too many aliases, or is nested too deeply"))
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ValueError(" ".join(str(error).split())) from None


def _candidates(folders: list[Path]) -> Iterator[Path]:
    for folder in folders:
        try:
            files = sorted(islice(folder.iterdir(), MOST_FILES))
        except OSError:
            continue
        named = (path for path in files if path.suffix.lower() in (*YAML, ".toml", ".json"))
        yield from sorted(named, key=lambda path: (path.stem != "config", path.name))


def _flat(value: Any) -> dict[str, Any]:
    """Return the settings of nested objects by dotted name, with references to other settings replaced."""
    flat: dict[str, Any] = {}
    left = deque([("", value)])
    for _ in range(MOST_VALUES):  # an alias can make an object part of itself
        if not left:
            break
        name, value = left.popleft()
        if isinstance(value, dict):
            left.extend([(f"{name}.{key}" if name else str(key), each) for key, each in value.items()])
        else:
            flat[name] = value
    for name, value in flat.items():
        for _ in range(DEEPEST):
            reference = REFERENCE.match(value) if isinstance(value, str) else None
            if reference is None or reference[1] not in flat:
                break
            value = flat[reference[1]]
        flat[name] = value
    return flat
