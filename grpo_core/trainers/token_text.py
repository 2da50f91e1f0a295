r"""The text of each token, from the ``tokenizer.json`` saved next to a recorded run, without a tokenizer library.

A token can contain part of a character: its bytes are then shown as escapes such as ``\xf0``. Longer text is never
assembled from these; a source stores prompts and completions as text.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from grpo_core.errors import RunFileError
from grpo_core.regular_file import opened_regular

FILE = "tokenizer.json"
LARGEST = 128 << 20
"""Maximum size of the file in bytes. The largest vocabularies in use take about 35 MB."""
MOST_TOKENS = 4_000_000


def vocabulary(folder: Path) -> tuple[str, ...]:
    """Return the text of each token, indexed by token number, (V,). Empty if there is no readable tokenizer."""
    try:
        with opened_regular(folder / FILE) as file:
            text = file.read(LARGEST + 1)
        return () if len(text) > LARGEST else _vocabulary(json.loads(text))
    except (OSError, ValueError, RecursionError, RunFileError, AttributeError, TypeError, LookupError):
        return ()


def numbered(count: int) -> tuple[str, ...]:
    """Return numbered placeholder names, for tokens whose text is unknown."""
    return tuple(f"‹{number}›" for number in range(count))


def _vocabulary(tokenizer: dict[str, Any]) -> tuple[str, ...]:
    vocab = tokenizer["model"]["vocab"]
    pairs = vocab.items() if isinstance(vocab, dict) else ((entry[0], number) for number, entry in enumerate(vocab))
    kinds = _types(tokenizer.get("decoder")) | _types(tokenizer.get("pre_tokenizer"))
    byte_level = "ByteLevel" in kinds
    texts = {number: piece(written, byte_level=byte_level) for written, number in pairs}
    texts |= {entry["id"]: str(entry["content"]) for entry in tokenizer.get("added_tokens") or ()}
    size = max(texts, default=-1) + 1
    if not 0 < size <= MOST_TOKENS or min(texts) < 0:
        return ()
    return tuple(texts.get(number, f"‹{number}›") for number in range(size))


def piece(written: str, *, byte_level: bool) -> str:
    """Decode a vocabulary entry into a token's text: byte by byte as in GPT-2, or as in SentencePiece."""
    if byte_level and LETTERS.issuperset(written):
        return written.translate(AS_LATIN).encode("latin-1").decode("utf-8", "backslashreplace")
    if byte_level:
        return written
    if len(written) == 6 and written.startswith("<0x") and written.endswith(">"):
        return bytes([int(written[3:5], 16)]).decode("utf-8", "backslashreplace")
    return written.replace("▁", " ")


def _types(part: Any) -> set[str]:
    """Return all values of "type" in a part of ``tokenizer.json``."""
    if isinstance(part, list):
        return set().union(*map(_types, part))
    if not isinstance(part, dict):
        return set()
    return {str(part.get("type"))}.union(*(_types(value) for value in part.values() if isinstance(value, dict | list)))


def _byte_of_letter() -> dict[str, int]:
    """Return the byte of each letter in byte-level vocabularies (GPT-2, ``bytes_to_unicode``): printable bytes are
    written as themselves, the others as letters starting at U+0100.
    """
    plain = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in plain]
    return {chr(byte): byte for byte in plain} | {chr(0x100 + place): byte for place, byte in enumerate(others)}


BYTES = _byte_of_letter()
LETTERS = frozenset(BYTES)
AS_LATIN = str.maketrans({letter: chr(byte) for letter, byte in BYTES.items()})
"""Translation table from each letter of :data:`BYTES` to the Latin-1 character of its byte."""
