"""Libraries of others that are linked into the libraries of Qt, pyarrow and NumPy, found by texts in their files."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class Inside:
    """A library inside another one.

    Attributes:
        name, licence: its name, and its licence as an SPDX expression.
        version: empty if the file does not say it.
    """

    name: str
    licence: str
    version: str


_BY_FILE: dict[str, dict[str, tuple[str, bytes]]] = {
    r"(lib)?Qt6?(Core|6Core)\.": {
        "pcre2": ("BSD-3-Clause", rb"(10\.\d\d) \d{4}-\d\d-\d\d"),
        "zlib": ("Zlib", rb"(?:de|in)flate (\d[\d.]+) Copyright"),
        "double-conversion": ("BSD-3-Clause", rb"double.conversion"),
    },
    r"(lib)?Qt6Gui\.": {
        "freetype": ("FTL OR GPL-2.0-or-later", rb"FreeType"),
        "harfbuzz": ("MIT", rb"HB_SHAPER_LIST|HB_OPTIONS"),
        "libpng": ("libpng-2.0", rb"libpng version (\d[\d.]+)"),
        "libjpeg-turbo": ("IJG AND BSD-3-Clause AND Zlib", rb"libjpeg-turbo|JPEGMEM"),
        "md4c": ("MIT", rb"md4c"),
    },
    r"(lib)?icu(data|dt)": {"icu": ("Unicode-3.0", rb"icudt(\d+)")},
    r"(lib)?qwebp\.": {"libwebp": ("BSD-3-Clause", rb"webp")},
    r"(lib)?arrow\.": {
        "abseil-cpp": ("Apache-2.0", rb"absl"),
        "aws-sdk-cpp": ("Apache-2.0", rb"aws-sdk|AWS_"),
        "azure-sdk-for-cpp": ("MIT", rb"azure"),
        "brotli": ("MIT", rb"[Bb]rotli"),
        "bzip2": ("bzip2-1.0.6", rb"bzip2[^\0]{0,30}version (\d[\d.]+)|BZh"),
        "curl": ("curl", rb"libcurl/(\d[\d.]+)"),
        "double-conversion": ("BSD-3-Clause", rb"double.conversion"),
        "flatbuffers": ("Apache-2.0", rb"flatbuffers"),
        "google-cloud-cpp": ("Apache-2.0", rb"google/cloud"),
        "libxml2": ("MIT", rb"libxml"),
        "lz4": ("BSD-2-Clause", rb"lz4"),
        "mimalloc": ("MIT", rb"mimalloc"),
        "openssl": ("Apache-2.0", rb"OpenSSL (\d[\d.]+)"),
        "opentelemetry-cpp": ("Apache-2.0", rb"opentelemetry"),
        "orc": ("Apache-2.0", rb"3orc\d"),
        "protobuf": ("BSD-3-Clause", rb"protobuf"),
        "rapidjson": ("MIT", rb"rapidjson"),
        "snappy": ("BSD-3-Clause", rb"snappy"),
        "zlib": ("Zlib", rb"(?:de|in)flate (\d[\d.]+) Copyright"),
        "zstd": ("BSD-3-Clause", rb"Zstandard|ZSTD_"),
    },
    r"(lib)?arrow_compute\.": {
        "re2": ("BSD-3-Clause", rb"re2/"),
        "utf8proc": ("MIT", rb"utf8proc"),
    },
    r"(lib)?parquet\.": {"thrift": ("Apache-2.0", rb"6apache6thrift|apache::thrift")},
    r"libscipy_openblas": {"openblas": ("BSD-3-Clause", rb"OpenBLAS (\d[\d.]*\d)")},
    r"libgfortran": {"gcc-libgfortran": ("GPL-3.0-or-later WITH GCC-exception-3.1", rb"libgfortran")},
    r"libquadmath": {"gcc-libquadmath": ("LGPL-2.1-or-later", rb"quadmath")},
}  # fmt: skip # table
"""Pattern of a file's name -> libraries that can be linked into it: licence, and a text of theirs with the version."""


def inside(path: Path) -> list[Inside]:
    """Return the libraries of others in a shared library, in alphabetical order."""
    rows = {
        name: row for pattern, rows in _BY_FILE.items() if re.match(pattern, path.name) for name, row in rows.items()
    }
    data = path.read_bytes() if rows else b""
    found = {name: (licence, re.search(text, data)) for name, (licence, text) in sorted(rows.items())}
    return [
        Inside(name=name, licence=licence, version=((match[1] if match.re.groups else None) or b"").decode("ascii"))
        for name, (licence, match) in found.items()
        if match is not None
    ]
