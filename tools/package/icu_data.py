"""The Unicode tables in Qt's wheel for Linux (``libicudata``, 32 MB), without those that Qt never opens.

Qt uses the tables for sorting and text encodings. The names of dates, currencies, regions and languages are in Qt
itself, and so are the rules for line and word breaks. The names of time zones are not shown anywhere.
"""

from __future__ import annotations

import re
import struct
import subprocess
import tempfile
from pathlib import Path

LEFT_OUT = ("brkitr", "curr", "lang", "rbnf", "region", "translit", "unit", "zone")
"""Folders of tables that are left out."""
_SOURCE = """.section .rodata
.globl {symbol}
.type {symbol}, @object
.balign 16
{symbol}: .incbin "{data}"
.size {symbol}, .-{symbol}
.section .note.GNU-stack,"",@progbits
"""


def trim(library: Path) -> int:
    """Rewrite the library without the tables that are left out. Return the number of bytes saved.

    Raises:
        SystemExit: the library is not laid out as expected, or there is no compiler.
    """
    before = library.read_bytes()
    table = smaller(_table(before, library.name))
    symbol = re.search(rb"icudt\d+_dat", before)
    if symbol is None:
        raise SystemExit(f"{library.name} names no table of ICU.")
    with tempfile.TemporaryDirectory(prefix="grpo-lab-icu-") as made:
        data, source, target = (Path(made, name) for name in ("table.dat", "table.s", library.name))
        data.write_bytes(table)
        source.write_text(_SOURCE.format(symbol=symbol[0].decode(), data=data.name), encoding="utf-8")
        command = ["cc", "-shared", "-nostdlib", f"-Wl,-soname,{library.name}", "-s", "-o", target.name, source.name]
        try:
            subprocess.run(command, cwd=made, check=True)
        except (OSError, subprocess.CalledProcessError):
            raise SystemExit("Making a package for Linux takes a C compiler: sudo apt-get install -y gcc") from None
        library.write_bytes(target.read_bytes())
    return len(before) - library.stat().st_size


def smaller(table: bytes) -> bytes:
    """Return ICU's common data (``ucmndata.h``) without the folders that are left out.

    It consists of a header, the number of entries, the offsets of each entry's name and data relative to that number,
    the names in order, and the data at multiples of 16.
    """
    head = struct.unpack_from("<H", table)[0]
    body = table[head:]
    (count,) = struct.unpack_from("<I", body)
    places = [struct.unpack_from("<II", body, 4 + 8 * i) for i in range(count)]
    ends = [*(place for _, place in places[1:]), len(body)]
    kept = []
    for (name_at, start), end in zip(places, ends, strict=True):
        name = body[name_at : body.index(b"\0", name_at)]
        if name.decode("ascii").split("/")[1] not in LEFT_OUT:
            kept.append((name, body[start:end]))
    names, data = bytearray(), bytearray()
    begin = 4 + 8 * len(kept)
    at = begin + sum(len(name) + 1 for name, _ in kept)
    gap = -(head + at) % 16
    entries = bytearray(struct.pack("<I", len(kept)))
    for name, content in kept:
        entries += struct.pack("<II", begin + len(names), at + gap + len(data))
        names += name + b"\0"
        data += content + bytes(-len(content) % 16)
    return table[:head] + bytes(entries + names) + bytes(gap) + bytes(data)


def _table(library: bytes, name: str) -> bytes:
    """Return the table in a library. It is found by its header: its size, two bytes of magic, the name of its format at
    offset 12.
    """
    at = library.find(b"CmnD") - 12
    if at < 0 or library[at + 2 : at + 4] != b"\xda\x27":
        raise SystemExit(f"{name} holds no table of ICU.")
    return library[at:]
