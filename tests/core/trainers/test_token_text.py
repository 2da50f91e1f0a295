"""The text of tokens from a saved tokenizer, however it encodes bytes and spaces."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from grpo_core.trainers.token_text import vocabulary


def saved(folder: Path, tokenizer: Any) -> Path:
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer), encoding="utf-8")
    return folder


def test_byte_level_pieces_are_text_and_parts_of_a_character_are_bytes(tmp_path: Path) -> None:
    vocab = {"Ġhello": 0, "Ċ": 1, "Ã": 2, "©": 3, "Ã©": 4}
    tokenizer = {"model": {"vocab": vocab}, "decoder": {"type": "Sequence", "decoders": [{"type": "ByteLevel"}]}}
    assert vocabulary(saved(tmp_path, tokenizer)) == (" hello", "\n", "\\xc3", "\\xa9", "é")


def test_sentencepiece_pieces_are_text(tmp_path: Path) -> None:
    tokenizer = {"model": {"vocab": [["<unk>", 0.0], ["▁the", -1.0], ["<0x0A>", -2.0]]}, "decoder": None}
    assert vocabulary(saved(tmp_path, tokenizer)) == ("<unk>", " the", "\n")


def test_added_tokens_have_their_own_text_and_gaps_their_numbers(tmp_path: Path) -> None:
    tokenizer = {"model": {"vocab": {"a": 0}}, "added_tokens": [{"id": 2, "content": "<|end|>"}]}
    assert vocabulary(saved(tmp_path, tokenizer)) == ("a", "‹1›", "<|end|>")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{",
        '{"model": {"vocab": {"a": 99999999999}}}',
        '{"model": {"vocab": {"a": -1}}}',
        '{"model": {"vocab": [[]]}}',
        "[" * 100_000,
    ],
)
def test_a_file_that_is_no_tokenizer_gives_no_words(tmp_path: Path, text: str) -> None:
    (tmp_path / "tokenizer.json").write_text(text)
    assert vocabulary(tmp_path) == ()
