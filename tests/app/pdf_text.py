"""The text of a PDF written by Qt, page by page, decoded with the character maps of its fonts."""

from __future__ import annotations

import re
import zlib


def pages_of(data: bytes) -> list[str]:
    """Return the text of each page without spaces, because Qt positions words and writes no character for some gaps."""
    objects = {int(found[1]): found[2] for found in re.finditer(rb"(\d+) 0 obj\s(.*?)endobj", data, re.DOTALL)}
    fonts = {}
    for number, body in objects.items():
        if b"/Type0" in body and (name := re.search(rb"/ToUnicode (\d+) 0 R", body)):
            fonts[number] = _letters(_stream(objects[int(name[1])]))
    pages = []
    for body in objects.values():
        if re.search(rb"/Type /Page\b", body) and (content := re.search(rb"/Contents (\d+) 0 R", body)):
            pages.append(_text(_stream(objects[int(content[1])]), fonts))
    return pages


def sizes_of(data: bytes) -> set[tuple[int, int]]:
    """Return the widths and heights of the pages, in points."""
    boxes = re.findall(rb"/MediaBox \[0 0 ([\d.]+) ([\d.]+)\s*\]", data)
    return {(round(float(width)), round(float(height))) for width, height in boxes}


def _stream(body: bytes) -> bytes:
    content = body.partition(b"stream")[2].lstrip(b"\r\n").rpartition(b"endstream")[0]
    return zlib.decompress(content) if b"/FlateDecode" in body.partition(b"stream")[0] else content


def _letters(table: bytes) -> dict[int, str]:
    """Return the letter of each glyph, from ranges <first> <last> [<letter> …], or <first> <last> <letter>."""
    letters = {}
    for block in re.findall(rb"beginbfrange(.*?)endbfrange", table, re.DOTALL):
        for first, last, listed, one in re.findall(rb"<(\w+)>\s*<(\w+)>\s*(?:\[([^\]]*)\]|<(\w+)>)", block):
            words = re.findall(rb"<(\w+)>", listed) or [one]
            for place, glyph in enumerate(range(int(first, 16), int(last, 16) + 1)):
                if place < len(words):
                    letters[glyph] = bytes.fromhex(words[place].decode()).decode("utf-16-be")
                else:
                    letters[glyph] = chr(int(one, 16) + place)
    for block in re.findall(rb"beginbfchar(.*?)endbfchar", table, re.DOTALL):
        for glyph, letter in re.findall(rb"<(\w+)>\s*<(\w+)>", block):
            letters[int(glyph, 16)] = bytes.fromhex(letter.decode()).decode("utf-16-be")
    return letters


def _text(content: bytes, fonts: dict[int, dict[int, str]]) -> str:
    font: dict[int, str] = {}
    said = []
    for name, glyphs in re.findall(rb"/F(\d+) [\d.]+ Tf|<([0-9A-Fa-f]+)> Tj", content):
        if name:
            font = fonts[int(name)]
        else:
            codes = (int(glyphs[place : place + 4], 16) for place in range(0, len(glyphs), 4))
            said.append("".join(font.get(code, "?") for code in codes))
    return "".join("".join(said).split())
