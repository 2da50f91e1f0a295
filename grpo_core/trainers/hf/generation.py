"""A folder's own generation settings, read in order to report which of them are ignored."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from grpo_core.errors import shortened
from grpo_core.parsing import object_in
from grpo_core.regular_file import read_limited
from grpo_core.text import tr

_PLAIN = {
    "do_sample": (True, False),
    "temperature": (1.0,),
    "top_k": (0, 50),
    "top_p": (1.0,),
    "typical_p": (1.0,),
    "repetition_penalty": (1.0,),
    "min_p": (),
    "num_beams": (1,),
    "no_repeat_ngram_size": (0,),
    "bad_words_ids": (),
    "suppress_tokens": (),
    "begin_suppress_tokens": (),
    "forced_bos_token_id": (),
    "forced_eos_token_id": (),
}
"""Generation settings that affect sampling -> values with which they have no effect."""
LARGEST = 1 << 20
"""Maximum size of the file in bytes. A larger one is ignored."""


def generation_settings(path: Path) -> dict[str, Any]:
    """Return the generation settings of the model at ``path``, as written in its file. Empty if there are none."""
    try:
        return object_in(read_limited(path / "generation_config.json", LARGEST)) or {}
    except (OSError, ValueError):
        return {}


def ignored(path: Path) -> tuple[str, ...]:
    """Return the generation settings of the model at ``path`` that are ignored, as “name = value”."""
    settings = generation_settings(path)
    return tuple(
        f"{name} = {shortened(str(settings[name]), 40)}"
        for name, plain in _PLAIN.items()
        if settings.get(name) is not None and (settings[name] not in plain or (name == "top_k" and settings[name]))
    )


def ignored_sentence(path: Path) -> str:
    """Return a sentence on the ignored generation settings of the model at ``path``. Empty if there are none."""
    names = ignored(path)
    if not names:
        return ""
    return tr(
        "Ignored, because completions are drawn from the entire distribution at the run's temperature: {names}."
    ).format(names=", ".join(names))
