"""System call filter of a process that reads untrusted bytes (``man 2 seccomp``), written by hand for two machines.

It refuses what such a process does not need and Landlock does not cover: other processes, programs, sockets, terminals,
and what changes a file without opening it. Calls that the C library can do without fail as if the kernel lacked them,
as do calls newer than this table.
"""

from __future__ import annotations

import ctypes
import os
import platform
import struct
from dataclasses import dataclass

_ALLOW, _EPERM, _ENOSYS, _KILL = 0x7FFF0000, 0x00050001, 0x00050026, 0x80000000
_LOAD, _EQUAL, _ABOVE, _AND, _RETURN = 0x20, 0x15, 0x25, 0x54, 0x06
_NEWEST = 469
"""The newest call that was considered, ``file_setattr`` (Linux 6.17), by its number on every machine."""
REFUSED: dict[str, tuple[int, int]] = {
    # other processes
    "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271), "kcmp": (312, 272),
    "pidfd_open": (434, 434), "pidfd_getfd": (438, 438), "pidfd_send_signal": (424, 424), "tkill": (200, 130),
    "rt_sigqueueinfo": (129, 138), "rt_tgsigqueueinfo": (297, 240), "setpriority": (141, 140), "ioprio_set": (251, 30),
    "sched_setaffinity": (203, 122), "sched_setparam": (142, 118), "sched_setscheduler": (144, 119),
    "sched_setattr": (314, 274), "setpgid": (109, 154), "setsid": (112, 157), "migrate_pages": (256, 238),
    "move_pages": (279, 239), "process_madvise": (440, 440), "process_mrelease": (448, 448),
    # programs, and processes of its own
    "execve": (59, 221), "execveat": (322, 281), "fork": (57, -1), "vfork": (58, -1), "unshare": (272, 97),
    "setns": (308, 268), "personality": (135, 92), "setuid": (105, 146), "setgid": (106, 144), "setreuid": (113, 145),
    "setregid": (114, 143), "setresuid": (117, 147), "setresgid": (119, 149), "setgroups": (116, 159),
    "setfsuid": (122, 151), "setfsgid": (123, 152), "capset": (126, 91),
    # sockets, shared memory, queues, keyrings
    "socket": (41, 198), "socketpair": (53, 199), "bind": (49, 200), "listen": (50, 201), "accept": (43, 202),
    "connect": (42, 203), "accept4": (288, 242), "sendto": (44, 206), "recvfrom": (45, 207), "setsockopt": (54, 208),
    "sendmsg": (46, 211), "recvmsg": (47, 212), "sendmmsg": (307, 269), "recvmmsg": (299, 243), "shmget": (29, 194),
    "shmat": (30, 196), "shmctl": (31, 195), "semget": (64, 190), "semctl": (66, 191), "msgget": (68, 186),
    "msgsnd": (69, 189), "msgrcv": (70, 188), "msgctl": (71, 187), "mq_open": (240, 180), "mq_unlink": (241, 181),
    "add_key": (248, 217), "request_key": (249, 218), "keyctl": (250, 219),
    # what is known about or changed in a file without opening it
    "chmod": (90, -1), "fchmod": (91, 52), "fchmodat": (268, 53), "fchmodat2": (452, 452), "chown": (92, -1),
    "fchown": (93, 55), "lchown": (94, -1), "fchownat": (260, 54), "utime": (132, -1), "utimes": (235, -1),
    "futimesat": (261, -1), "utimensat": (280, 88), "setxattr": (188, 5), "lsetxattr": (189, 6), "fsetxattr": (190, 7),
    "getxattr": (191, 8), "lgetxattr": (192, 9), "fgetxattr": (193, 10), "listxattr": (194, 11),
    "llistxattr": (195, 12), "flistxattr": (196, 13), "removexattr": (197, 14), "lremovexattr": (198, 15),
    "fremovexattr": (199, 16), "setxattrat": (463, 463), "getxattrat": (464, 464), "listxattrat": (465, 465),
    "removexattrat": (466, 466),
    "file_getattr": (468, 468), "file_setattr": (469, 469), "truncate": (76, 45), "mknod": (133, -1),
    "mknodat": (259, 33), "inotify_init": (253, -1), "inotify_init1": (294, 26), "inotify_add_watch": (254, 27),
    "fanotify_init": (300, 262), "fanotify_mark": (301, 263), "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265), "quotactl": (179, 60), "quotactl_fd": (443, 443),
    # the system
    "io_uring_setup": (425, 425), "io_uring_enter": (426, 426), "io_uring_register": (427, 427), "bpf": (321, 280),
    "perf_event_open": (298, 241), "userfaultfd": (323, 282), "syslog": (103, 116), "mount": (165, 40),
    "umount2": (166, 39), "pivot_root": (155, 41), "chroot": (161, 51), "open_tree": (428, 428),
    "move_mount": (429, 429), "fsopen": (430, 430), "fsconfig": (431, 431), "fsmount": (432, 432), "fspick": (433, 433),
    "mount_setattr": (442, 442), "open_tree_attr": (467, 467), "swapon": (167, 224), "swapoff": (168, 225),
    "reboot": (169, 142), "kexec_load": (246, 104), "kexec_file_load": (320, 294), "init_module": (175, 105),
    "finit_module": (313, 273), "delete_module": (176, 106), "acct": (163, 89), "vhangup": (153, 58),
    "settimeofday": (164, 170), "clock_settime": (227, 112), "adjtimex": (159, 171), "clock_adjtime": (305, 266),
    "sethostname": (170, 161), "setdomainname": (171, 162), "iopl": (172, -1), "ioperm": (173, -1),
}  # fmt: skip # table
"""Calls that fail with EPERM, by name: their numbers on x86_64 and aarch64, or -1 where there is no such call."""
ONLINE = frozenset(
    {
        "socketpair", "connect", "sendto", "recvfrom", "setsockopt", "sendmsg", "recvmsg", "sendmmsg", "recvmmsg",
    }
)  # fmt: skip # table
"""Calls of :data:`REFUSED` that a process needs to connect to another machine, besides sockets of the internet."""
UNKNOWN = (435, 437)
"""Calls that fail with ENOSYS, because a filter cannot see their arguments: clone3 and openat2."""
_THREAD, _NAMESPACES = 0x10000, 0x7E020080
"""Flags of clone: for a thread, and for a new namespace of any kind."""
_READ_ONLY, _TRUNCATED = 0b11, 0o1000
"""Flags of open: the mask of its mode, which is 0 for reading, and the request to truncate the file."""
_INTERNET = (2, 10)
"""Families of sockets of the internet: AF_INET and AF_INET6."""
_IOCTLS = (0x5401, 0x802C542A, 0x5413, 0x5421, 0x5450, 0x5451, 0x541B)
"""Allowed requests of ioctl: TCGETS, TCGETS2, TIOCGWINSZ, FIONBIO, FIONCLEX, FIOCLEX, FIONREAD."""
_FCNTLS = (8, 10, 15, 1024, 1026)
"""Refused requests of fcntl: F_SETOWN, F_SETSIG, F_SETOWN_EX, F_SETLEASE and F_NOTIFY, which send signals."""


@dataclass(frozen=True, kw_only=True)
class Machine:
    """A processor architecture.

    Attributes:
        audit: its number in seccomp (``AUDIT_ARCH_…``).
        column: its column in :data:`REFUSED`.
        seccomp, ioctl, fcntl, prlimit64, clone, openat, kill, tgkill: numbers of calls.
        open: number of the call ``open``, or -1.
    """

    audit: int
    column: int
    seccomp: int
    ioctl: int
    fcntl: int
    prlimit64: int
    clone: int
    openat: int
    kill: int
    tgkill: int
    open: int


MACHINES = {
    "x86_64": Machine(
        audit=0xC000003E, column=0, seccomp=317, ioctl=16, fcntl=72, prlimit64=302, clone=56, openat=257, kill=62,
        tgkill=234, open=2,
    ),
    "aarch64": Machine(
        audit=0xC00000B7, column=1, seccomp=277, ioctl=29, fcntl=25, prlimit64=261, clone=220, openat=56, kill=129,
        tgkill=131, open=-1,
    ),
}  # fmt: skip # table


def refuse(*, online: bool) -> bool:
    """Install the filter for every thread of this process. Return whether the kernel has accepted it.

    The process can connect to other machines if ``online``. It must have renounced new privileges
    (``PR_SET_NO_NEW_PRIVS``).
    """
    machine = MACHINES.get(platform.machine())
    if machine is None:
        return False
    program = program_for(machine, os.getpid(), online=online)
    code = ctypes.create_string_buffer(program)
    header = struct.pack("HxxxxxxQ", len(program) // 8, ctypes.addressof(code))
    return bool(ctypes.CDLL(None).syscall(machine.seccomp, 1, 1, header) == 0)  # a filter, for all threads


def program_for(machine: Machine, process: int, *, online: bool = False) -> bytes:
    """Return the packet filter program for a machine and the number of the process itself.

    With ``online``, it allows sockets of the internet.

    A call in the convention of another machine kills the process. Of an argument, only the lower 32 bits are compared,
    which are those that the kernel uses.
    """

    def checked(call: int, argument: int, values: tuple[int, ...], others: int, *, mask: int = 0xFFFFFFFF) -> list[Row]:
        """Return the rows for a call that has one result for some values of an argument, and ``others`` otherwise."""
        listed = _EPERM if others == _ALLOW else _ALLOW
        rows = [(_LOAD, 0, 0, 16 + 8 * argument), (_AND, 0, 0, mask)]
        rows += [row for value in values for row in ((_EQUAL, 0, 1, value), (_RETURN, 0, 0, listed))]
        return [(_EQUAL, 0, len(rows) + 1, call), *rows, (_RETURN, 0, 0, others)] if call >= 0 else []

    code = [(_LOAD, 0, 0, 4), (_EQUAL, 1, 0, machine.audit), (_RETURN, 0, 0, _KILL), (_LOAD, 0, 0, 0)]
    code += [(_ABOVE, 0, 1, _NEWEST), (_RETURN, 0, 0, _ENOSYS)]
    code += checked(machine.ioctl, 1, _IOCTLS, _EPERM)
    code += checked(machine.fcntl, 1, _FCNTLS, _ALLOW)
    code += checked(machine.prlimit64, 0, (0, process), _EPERM)
    code += checked(machine.kill, 0, (process,), _EPERM) + checked(machine.tgkill, 0, (process,), _EPERM)
    code += checked(machine.clone, 0, (_THREAD,), _EPERM, mask=_THREAD | _NAMESPACES)
    code += checked(machine.openat, 2, (_TRUNCATED,), _ALLOW, mask=_READ_ONLY | _TRUNCATED)
    code += checked(machine.open, 1, (_TRUNCATED,), _ALLOW, mask=_READ_ONLY | _TRUNCATED)
    if online:
        code += checked(REFUSED["socket"][machine.column], 0, _INTERNET, _EPERM)
    refused = [both[machine.column] for name, both in REFUSED.items() if not (online and name in ONLINE)]
    for calls, result in ((UNKNOWN, _ENOSYS), (refused, _EPERM)):
        code += [row for call in calls if call >= 0 for row in ((_EQUAL, 0, 1, call), (_RETURN, 0, 0, result))]
    code.append((_RETURN, 0, 0, _ALLOW))
    return b"".join(struct.pack("HBBI", *row) for row in code)


Row = tuple[int, int, int, int]
"""An instruction: operation, jumps if true and if false, and a number."""
