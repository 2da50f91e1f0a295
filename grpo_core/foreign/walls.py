"""Sandbox of a process that reads an untrusted file: access only to the program, that file, and its own folder.

The process that is connected to a cluster has the same sandbox, with sockets of the internet.

It works only on Linux, with two mechanisms that need no privileges: Landlock for files (``man 7 landlock``), and a
filter of system calls for everything else (:mod:`grpo_core.foreign.system_calls`). If the kernel lacks one, the process
reads without it, and the problem report says so.
"""

from __future__ import annotations

import ctypes
import os
import struct
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path

from grpo_core import plugins
from grpo_core.errors import RunFileError
from grpo_core.foreign.formats import place_of
from grpo_core.foreign.system_calls import refuse
from grpo_core.runs.database import COMPANIONS
from grpo_core.text import tr

_CREATE, _ADD, _RESTRICT = 444, 445, 446
_READ = 0b1100
"""The rights to read files and to list folders."""
_FIRST, _REFER, _TRUNCATE, _IOCTL = (1 << 13) - 1, 1 << 13, 1 << 14, 1 << 15
"""Rights that Landlock can restrict since its versions 1, 2, 3 and 5."""
_OF_FILES = 0b110 | _TRUNCATE | _IOCTL
"""Rights to read and write that apply to a file rather than a folder."""
_BIND, _BIND_AND_CONNECT = 0b01, 0b11
_NO_NEW_PRIVILEGES = 38
_LOOKED_THROUGH = 2_000
"""Maximum number of entries of a folder that are checked for links."""
SYSTEM = (
    "/usr",
    "/lib",
    "/lib64",
    "/etc/ld.so.cache",
    "/etc/localtime",
    "/proc/cpuinfo",
    "/proc/meminfo",
    "/sys/devices/system/cpu",
    "/dev/urandom",
)
NETWORK = ("/etc/hosts", "/etc/resolv.conf", "/etc/nsswitch.conf", "/etc/host.conf", "/etc/gai.conf", "/etc/services")
"""Files by which the system finds the address of another machine."""


def version() -> int:
    """Return the version of Landlock in the kernel, or 0 without it."""
    if sys.platform != "linux":
        return 0
    with suppress(OSError, AttributeError):
        return max(int(_system().syscall(_CREATE, None, ctypes.c_size_t(0), 1)), 0)
    return 0


def enclose(path: Path, scratch: Path | None, *, online: Sequence[Path] | None = None) -> tuple[bool, bool]:
    """Restrict this process to reading the program and ``path`` and writing to ``scratch``, without other processes,
    programs or sockets. If ``online`` is given, it can connect to other machines, and read these files.

    The restriction applies to the calling thread and to all threads that are started later.

    Returns:
        Whether the kernel enforces the restriction of files, and that of system calls.

    Raises:
        RunFileError: this process has another thread, which would remain unrestricted.
    """
    if sys.platform != "linux":
        return False, False
    if (count := len(os.listdir("/proc/self/task"))) > 1:
        raise RunFileError(
            tr(
                "{name} was not opened: the process that reads it could not be restricted to this file, because it "
                "already had {count} threads."
            ).format(name=path.name, count=count)
        )
    system = _system()
    if system.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0):
        return False, False
    return _restrict_files(system, path, scratch, online), refuse(online=online is not None)


def _restrict_files(system: ctypes.CDLL, path: Path, scratch: Path | None, online: Sequence[Path] | None) -> bool:
    """Restrict the files and, where the kernel can, TCP and signals (Landlock). Return whether they are restricted."""
    known = version()
    if not known:
        return False
    handled = _FIRST | _REFER * (known >= 2) | _TRUNCATE * (known >= 3) | _IOCTL * (known >= 5)
    ports = _BIND_AND_CONNECT if online is None else _BIND
    attributes = struct.pack("QQQ", handled, ports * (known >= 4), 0b11 * (known >= 6))
    size = 8 if known < 4 else 16 if known < 6 else 24
    ruleset = system.syscall(_CREATE, attributes, ctypes.c_size_t(size), 0)
    if ruleset < 0:
        return False
    try:
        read = [*readable(path), *(() if online is None else (*map(Path, NETWORK), *online))]
        written = writable(path, scratch)
        for place, rights in [*((place, _READ) for place in read), *((place, handled & ~1) for place in written)]:
            _allow(system, ruleset, place, rights & handled)
        return bool(system.syscall(_RESTRICT, ruleset, 0) == 0)
    finally:
        os.close(ruleset)


def readable(path: Path) -> Iterator[Path]:
    """Yield the readable paths: the program, its interpreter and libraries, and the files that belong to the source.

    A folder of the import path that contains the user's home folder is left out.
    """
    yield from map(Path, SYSTEM)
    home = Path.home()
    program = (Path(place) for place in (sys.prefix, sys.base_prefix, sys.exec_prefix, *sys.path) if place)
    yield from (place for place in program if not home.is_relative_to(place.resolve()))
    # a frozen program reads its modules from its executable, which is beside its folder
    yield from (Path(sys.executable).resolve(), Path(__file__).parents[1], Path(__file__).parents[2] / "resources")
    yield from plugins.files()
    place = place_of(path)
    yield place
    yield from (place.with_name(place.name + ending) for ending in COMPANIONS)
    if (place / "adapter_config.json").exists() and not (place / "config.json").exists():
        beside = islice(place.parent.iterdir(), _LOOKED_THROUGH)
        yield from (one for one in beside if (one / "config.json").is_file())  # one of them is the adapter's model
    if place.is_dir():
        targets = map(_target, filter(Path.is_symlink, islice(place.rglob("*"), _LOOKED_THROUGH)))
        yield from (target for target in targets if not home.is_relative_to(target))


def _target(link: Path) -> Path:
    """Return the target of a link, or the link itself if it is circular."""
    try:
        return link.resolve()
    except (OSError, RuntimeError):
        return link


def writable(path: Path, scratch: Path | None) -> Iterator[Path]:
    """Yield the source's own folder in the cache, and the index of the SQLite log of a run file."""
    yield Path(os.devnull)
    if scratch is not None:
        yield scratch
    if path.suffix.lower() == ".grpo":
        yield path.with_name(path.name + "-shm")


def _allow(system: ctypes.CDLL, ruleset: int, place: Path, rights: int) -> None:
    """Allow access to everything below ``place``, if it exists."""
    with suppress(OSError, ValueError):
        number = os.open(place, os.O_PATH | os.O_CLOEXEC)
        try:
            rights &= -1 if place.is_dir() else _OF_FILES
            system.syscall(_ADD, ruleset, 1, struct.pack("=Qi", rights, number), 0)
        finally:
            os.close(number)


def _system() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)
