"""Attempts to leave the sandbox of a process that reads untrusted files, which it makes to show that they fail.

Each attempt is harmless if it succeeds: it sets a value that is already set, or touches a file made for this purpose.
"""

from __future__ import annotations

import ctypes
import os
import platform
import socket
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

from grpo_core.child.answering import Poll
from grpo_core.foreign import system_calls, walls
from grpo_core.text import tr

REFUSED, DONE = "refused", "done"
OWN = ("read the file", "write to its folder")
"""Attempts that must succeed."""
_TIOCSTI, _F_SETOWN = 0x5412, 8


def probe(path: str, secret: str, *, poll: Poll) -> Iterator[dict[str, str]]:
    """Yield the outcome of each attempt: :data:`REFUSED`, :data:`DONE`, or another error."""
    yield {name: tried(attempt) for name, attempt in attempts(Path(path), Path(secret)).items()}


def attempts(path: Path, secret: Path) -> dict[str, Callable[[], object]]:
    """Return the attempts by name. Each raises OSError if it is refused."""
    made: dict[str, Callable[[], object]] = {
        OWN[0]: path.read_bytes,
        OWN[1]: lambda: Path(tempfile.gettempdir(), "probe").write_bytes(b"x"),
        "read a secret": secret.read_bytes,
        "read it in a thread": lambda: _in_thread(secret.read_bytes),
        "list its folder": lambda: os.listdir(secret.parent),
        "write beside it": lambda: secret.with_name("written").write_bytes(b""),
        "shorten it": lambda: os.truncate(secret, 1),
        "delete it": lambda: secret.with_name("deleted").unlink(),
        "write to the file": lambda: path.open("ab").close(),
        "open a socket": lambda: [socket.socket()],
        "read the environment": _environment,
    }
    if sys.platform != "linux":
        return made
    import fcntl
    import resource

    parent, nothing = os.getppid(), "/nowhere/at all"
    return made | {
        "open a local socket": lambda: [socket.socket(socket.AF_UNIX)],
        "open a pair of sockets": socket.socketpair,
        "type into the terminal": lambda: [fcntl.ioctl(number, _TIOCSTI, b"\n") for number in range(3)],
        "open the terminal": lambda: os.close(os.open("/dev/tty", os.O_RDWR)),
        "signal the program": lambda: os.kill(parent, 0),
        "own its signals": lambda: fcntl.fcntl(0, _F_SETOWN, parent),
        "limit the program": lambda: resource.prlimit(
            parent, resource.RLIMIT_CORE, resource.prlimit(parent, resource.RLIMIT_CORE)
        ),
        "renice the program": lambda: os.setpriority(os.PRIO_PROCESS, parent, os.getpriority(os.PRIO_PROCESS, parent)),
        "pin the program": lambda: os.sched_setaffinity(parent, os.sched_getaffinity(parent)),
        "chmod": lambda: secret.chmod(0o666),
        "chown": lambda: os.chown(secret, -1, -1),
        "set times": lambda: os.utime(secret),
        "set an attribute": lambda: os.setxattr(secret, "user.grpo", b"x"),
        "list attributes": lambda: os.listxattr(secret),
        "watch a folder": lambda: _called("inotify_init1", 0),
        "fork": _fork,
        "start a program": lambda: os.waitpid(os.posix_spawn("/bin/true", ["true"], {}), 0),
        "become a program": lambda: os.execv(nothing, [nothing]),
        "make a namespace": lambda: _called("unshare", 0),
        "trace": lambda: _called("ptrace", 0x4206, parent, 0, 0),
        "read memory": lambda: _called("process_vm_readv", parent, 0, 0, 0, 0, 0),
        "use the keyring": lambda: _called("keyctl", 0, -3, 0),
        "share memory": lambda: _called("shmctl", 0, 14, bytes(256)),
        "use io_uring": lambda: _called("io_uring_setup", 1, bytes(120)),
    }


def tried(attempt: Callable[[], object]) -> str:
    try:
        attempt()
    except PermissionError:
        return REFUSED
    except OSError as error:
        return f"{type(error).__name__}: {error.strerror or error}"
    return DONE


def failures(outcomes: dict[str, str]) -> list[str]:
    """Return the names of the attempts that did not end as they must."""
    return [name for name, outcome in outcomes.items() if outcome != (DONE if name in OWN else REFUSED)]


def whole() -> bool:
    """Return whether this system has every part of the sandbox."""
    return walls.version() > 0 and platform.machine() in system_calls.MACHINES


def said() -> str:
    """Describe what the processes that read untrusted files can access."""
    if sys.platform == "win32":
        return tr("Foreign files are read by a process of its own; Windows limits nothing that it can access.")
    if sys.platform != "linux":
        return tr("Foreign files are read by a process with limits; macOS limits nothing that it can access.")
    known, filtered = walls.version(), platform.machine() in system_calls.MACHINES
    if known and filtered:
        return tr(
            "Foreign files are read by a process that cannot access other files, other processes or the network "
            "(Landlock {version}, seccomp)."
        ).format(version=known)
    if known:
        return tr(
            "Foreign files are read by a process that cannot access other files (Landlock {version}), but can access "
            "other processes and the network, because there is no filter of system calls for this processor."
        ).format(version=known)
    if filtered:
        return tr(
            "Foreign files are read by a process that cannot access other processes or the network (seccomp); it can "
            "read and write any file of yours, because Landlock is not available here."
        )
    return tr(
        "Foreign files are read by a process with limits; it can access any file, because Landlock is not available "
        "here."
    )


def table(outcomes: dict[str, str]) -> list[str]:
    wide = max(map(len, outcomes))
    wrong = failures(outcomes)
    return [f"{name:{wide}}  {outcome}{' (!)' if name in wrong else ''}" for name, outcome in outcomes.items()]


def _in_thread(attempt: Callable[[], object]) -> None:
    """Make an attempt in another thread, and raise its error here."""
    errors: list[OSError] = []

    def run() -> None:
        try:
            attempt()
        except OSError as error:
            errors.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if errors:
        raise errors[0]


def _environment() -> None:
    """Look for variables that only the user's shell needs."""
    from grpo_core.child.process import needed

    if found := set(os.environ) - set(needed(os.environ)):
        raise OSError(", ".join(sorted(found)))
    raise PermissionError


def _fork() -> None:
    if not (child := os.fork()):
        os._exit(0)
    os.waitpid(child, 0)


def _called(name: str, *arguments: int | bytes) -> None:
    """Make a system call by name.

    Raises:
        OSError: it failed.
    """
    machine = system_calls.MACHINES.get(platform.machine())
    if machine is None:
        return
    libc = ctypes.CDLL(None, use_errno=True)
    given = [ctypes.c_long(one) if isinstance(one, int) else one for one in arguments]
    if libc.syscall(ctypes.c_long(system_calls.REFUSED[name][machine.column]), *given) < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
