"""The filter of system calls, run by a small interpreter of packet filter programs for both machines."""

from __future__ import annotations

import errno
import struct

import pytest

from grpo_core.foreign.system_calls import MACHINES, ONLINE, REFUSED, Machine, program_for

PROCESS = 1234
ALLOWED, KILLED = 0x7FFF0000, 0x80000000
MISSING = 0x00050000 | errno.ENOSYS
FORBIDDEN = 0x00050000 | errno.EPERM


def result(machine: Machine, call: int, *arguments: int, audit: int | None = None, online: bool = False) -> int:
    """Run the program on a call, as the kernel does, and return its result."""
    data = struct.pack("<iIQ6Q", call, audit or machine.audit, 0, *arguments, *[0] * (6 - len(arguments)))
    code = [*struct.iter_unpack("<HBBI", program_for(machine, PROCESS, online=online))]
    accumulator = place = 0
    while True:
        (operation, true, false, number), place = code[place], place + 1
        match operation:
            case 0x20:
                (accumulator,) = struct.unpack_from("<I", data, number)
            case 0x54:
                accumulator &= number
            case 0x15:
                place += true if accumulator == number else false
            case 0x25:
                place += true if accumulator > number else false
            case 0x06:
                return number
            case _:
                raise ValueError(f"no instruction {operation:#x}")


@pytest.mark.parametrize("name", MACHINES)
def test_only_what_a_reader_needs_is_allowed(name: str) -> None:
    machine = MACHINES[name]
    for call in (numbers[machine.column] for numbers in REFUSED.values()):
        assert call < 0 or result(machine, call) == FORBIDDEN
    kin = {"TIOCSTI": 0x5412, "TIOCLINUX": 0x541C, "TIOCSTI with more bits": 0x1_0000_5412}
    assert {result(machine, machine.ioctl, 0, request) for request in kin.values()} == {FORBIDDEN}
    assert result(machine, machine.ioctl, 0, 0x5401) == ALLOWED
    thread, process, namespace = 0x3D0F00, 17, 0x3D0F00 | 0x10000000
    assert [result(machine, machine.clone, flags) for flags in (thread, process, namespace)] == [
        ALLOWED, FORBIDDEN, FORBIDDEN,
    ]  # fmt: skip # table
    assert [result(machine, machine.prlimit64, whose) for whose in (0, PROCESS, 1)] == [ALLOWED, ALLOWED, FORBIDDEN]
    for send in (machine.kill, machine.tgkill):
        assert [result(machine, send, whose) for whose in (PROCESS, 1, 0, 2**64 - 1)] == [ALLOWED] + 3 * [FORBIDDEN]
    assert [result(machine, machine.fcntl, 0, request) for request in (1, 3, 8, 10)] == 2 * [ALLOWED] + 2 * [FORBIDDEN]
    reading, shortening, writing = 0o2000000, 0o1000, 0o1001
    opened = [result(machine, machine.openat, 0, 0, flags) for flags in (reading, shortening, writing)]
    assert opened == [ALLOWED, FORBIDDEN, ALLOWED]
    assert {result(machine, call) for call in (435, 437, 470, 0x40000000 | 1)} == {MISSING}
    assert result(machine, 0, audit=0x40000003) == KILLED


@pytest.mark.parametrize("name", MACHINES)
def test_a_process_that_connects_has_sockets_of_the_internet_alone(name: str) -> None:
    machine = MACHINES[name]
    families = {"AF_UNIX": 1, "AF_INET": 2, "AF_INET6": 10, "AF_NETLINK": 16, "AF_PACKET": 17, "AF_VSOCK": 40}
    opened = [result(machine, REFUSED["socket"][machine.column], number, online=True) for number in families.values()]
    assert opened == [FORBIDDEN, ALLOWED, ALLOWED, FORBIDDEN, FORBIDDEN, FORBIDDEN]
    for call, numbers in REFUSED.items():
        if (number := numbers[machine.column]) >= 0:
            assert (result(machine, number, online=True) == ALLOWED) == (call in ONLINE), call
