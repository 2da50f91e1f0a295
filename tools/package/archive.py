"""Reproducible archives: the same folder gives the same bytes, on any machine and at any time."""

from __future__ import annotations

import lzma
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

FILTERS = [{"id": lzma.FILTER_X86}, {"id": lzma.FILTER_LZMA2, "preset": 6}]
"""Compression filters. Most of the content is machine code. Preset 9 takes twice as long and saves only 1 %."""


def pack(folder: Path, moment: int) -> Path:
    """Write the archive of ``folder`` next to it. Return its path.

    Args:
        folder: the folder of the package.
        moment: modification time of every file, in seconds since 1970.
    """
    if sys.platform == "win32":
        return Path(shutil.make_archive(str(folder), "zip", folder.parent, folder.name))
    if sys.platform == "darwin":  # keeps the links inside the bundle
        target = folder.with_name(folder.name + ".zip")
        subprocess.run(["ditto", "-c", "-k", str(folder), str(target)], check=True)
        return target
    target = folder.with_name(folder.name + ".tar.xz")
    with (
        lzma.open(target, "wb", format=lzma.FORMAT_XZ, filters=FILTERS) as packed,
        tarfile.open(fileobj=packed, mode="w|", format=tarfile.PAX_FORMAT) as archive,
    ):
        for path in [folder, *sorted(folder.rglob("*"))]:
            archive.add(path, str(path.relative_to(folder.parent)), recursive=False, filter=lambda i: _plain(i, moment))
    return target


def _plain(entry: tarfile.TarInfo, moment: int) -> tarfile.TarInfo:
    """Remove the owner, the time and the umask of the machine that created the file."""
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    entry.mtime = moment
    entry.mode = 0o755 if entry.isdir() or entry.mode & 0o100 else 0o644
    return entry
