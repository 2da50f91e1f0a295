"""Sandbox of a process that reads an untrusted file: access only to the program, that file, and its own folder.

It works only on Linux, with two mechanisms that need no privileges: Landlock for files and TCP (``man 7 landlock``),
and a system call filter for all other sockets (``man 2 seccomp``). If the kernel lacks one, the process reads without
it, and the problem report says so.
"""

from __future__ import annotations

import ctypes
import os
import platform
import struct
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path

from grpo_core import plugins
from grpo_core.errors import RunFileError
from grpo_core.foreign.formats import place_of
from grpo_core.text import tr

_CREATE, _ADD, _RESTRICT = 444, 445, 446
_READ = 0b1101
"""The rights to execute and read files, and to list folders."""
_FIRST, _REFER, _TRUNCATE, _IOCTL = (1 << 13) - 1, 1 << 13, 1 << 14, 1 << 15
"""Rights that Landlock can restrict since its versions 1, 2, 3 and 5."""
_OF_FILES = 0b111 | _TRUNCATE | _IOCTL
"""Rights that apply to a file rather than a folder."""
_BIND_AND_CONNECT = 0b11
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
_MACHINES = {"x86_64": (0xC000003E, 317, (41, 101, 425)), "aarch64": (0xC00000B7, 277, (198, 117, 425))}
"""Machine -> its number in seccomp, the number of the system call ``seccomp``, and the numbers of forbidden calls.

The forbidden calls are socket, ptrace and io_uring_setup.
"""


def version() -> int:
    """Return the version of Landlock in the kernel, or 0 without it."""
    if sys.platform != "linux":
        return 0
    with suppress(OSError, AttributeError):
        return max(int(_system().syscall(_CREATE, None, ctypes.c_size_t(0), 1)), 0)
    return 0


def said() -> str:
    """Describe what the processes that read untrusted files can access."""
    known = version()
    if not known:
        return tr(
            "Foreign files are read by a process with limits; it can access any file, because Landlock is not "
            "available here."
        )
    sentence = tr("Foreign files are read by a process that cannot access other files (Landlock {version}).")
    if platform.machine() in _MACHINES:
        sentence = tr(
            "Foreign files are read by a process that cannot access other files or the network (Landlock {version})."
        )
    return sentence.format(version=known)


def enclose(path: Path, scratch: Path | None) -> bool:
    """Restrict this process to reading the program and ``path`` and writing to ``scratch``, without sockets.

    The restriction applies to the calling thread and to all threads and processes that are started later.

    Returns:
        Whether the kernel enforces the restriction; if not, nothing is changed.

    Raises:
        RunFileError: this process has another thread, which would remain unrestricted.
    """
    known = version()
    if not known:
        return False
    if (count := len(os.listdir("/proc/self/task"))) > 1:
        raise RunFileError(
            tr(
                "{name} was not opened: the process that reads it could not be restricted to this file, because it "
                "already had {count} threads."
            ).format(name=path.name, count=count)
        )
    handled = _FIRST | _REFER * (known >= 2) | _TRUNCATE * (known >= 3) | _IOCTL * (known >= 5)
    attributes = struct.pack("QQQ", handled, _BIND_AND_CONNECT * (known >= 4), 0b11 * (known >= 6))
    size = 8 if known < 4 else 16 if known < 6 else 24
    system = _system()
    ruleset = system.syscall(_CREATE, attributes, ctypes.c_size_t(size), 0)
    if ruleset < 0:
        return False
    try:
        read, written = readable(path), writable(path, scratch)
        for place, rights in [*((place, _READ) for place in read), *((place, handled) for place in written)]:
            _allow(system, ruleset, place, rights & handled)
        if system.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0) or system.syscall(_RESTRICT, ruleset, 0):
            return False
    finally:
        os.close(ruleset)
    _forbid_sockets(system)
    return True


def readable(path: Path) -> Iterator[Path]:
    """Yield the readable paths: the program, its interpreter and libraries, and the files that belong to the source."""
    yield from map(Path, SYSTEM)
    program = [sys.prefix, sys.base_prefix, sys.exec_prefix, str(Path(sys.executable).resolve().parent), *sys.path]
    yield from (Path(place) for place in program if place)
    yield Path(__file__).parents[2]
    yield from plugins.files()
    place = place_of(path)
    yield place
    alone = (place / "adapter_config.json").exists() and not (place / "config.json").exists()
    if place.suffix.lower() == ".grpo" or alone:  # a log next to it, or the model next to an adapter
        yield place.parent
    yield from (place.with_name(place.name + ending) for ending in ("-wal", "-shm"))
    if place.is_dir():
        yield from map(_target, filter(Path.is_symlink, islice(place.rglob("*"), _LOOKED_THROUGH)))


def _target(link: Path) -> Path:
    """Return the target of a link, or the link itself if it is circular."""
    try:
        return link.resolve()
    except (OSError, RuntimeError):
        return link


def writable(path: Path, scratch: Path | None) -> Iterator[Path]:
    """Yield the source's own folder in the cache, and the folder of a run file that has a SQLite log."""
    yield Path(os.devnull)
    if scratch is not None:
        yield scratch
    log = path.with_name(path.name + "-wal")
    if path.suffix.lower() == ".grpo" and log.exists():
        yield path.parent


def _allow(system: ctypes.CDLL, ruleset: int, place: Path, rights: int) -> None:
    """Allow access to everything below ``place``, if it exists."""
    with suppress(OSError, ValueError):
        number = os.open(place, os.O_PATH | os.O_CLOEXEC)
        try:
            rights &= -1 if place.is_dir() else _OF_FILES
            system.syscall(_ADD, ruleset, 1, struct.pack("=Qi", rights, number), 0)
        finally:
            os.close(number)


def _forbid_sockets(system: ctypes.CDLL) -> bool:
    """Block calls that open sockets or inspect other processes, for every thread of this process."""
    if platform.machine() not in _MACHINES:
        return False
    machine, seccomp, refused = _MACHINES[platform.machine()]
    program = _filter(machine, refused)
    code = ctypes.create_string_buffer(program)
    header = struct.pack("HxxxxxxQ", len(program) // 8, ctypes.addressof(code))
    return bool(system.syscall(seccomp, 1, 1, header) == 0)  # a filter, for all threads


def _filter(machine: int, refused: Iterable[int]) -> bytes:
    """Return a packet filter program under which calls of another architecture and ``refused`` calls fail with
    EPERM.
    """
    load, equal, result, above = 0x20, 0x15, 0x06, 0x35
    allow, refuse = 0x7FFF0000, 0x00050001
    calls = [*refused]
    code = [
        (load, 0, 0, 4),
        (equal, 0, len(calls) + 3, machine),
        (load, 0, 0, 0),
        (above, len(calls) + 1, 0, 0x40000000),
    ]
    code += [(equal, len(calls) - place, 0, call) for place, call in enumerate(calls)]
    code += [(result, 0, 0, allow), (result, 0, 0, refuse)]
    return b"".join(struct.pack("HBBI", *one) for one in code)


def _system() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)
