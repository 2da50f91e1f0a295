"""Commands on their way to the worker."""

from __future__ import annotations

import threading
import time

from app.training.worker import Mailbox
from grpo_core.host.commands import Close, Pause, SetSpeed


def test_commands_come_out_in_the_order_in_which_they_went_in() -> None:
    mailbox = Mailbox()
    sent = [SetSpeed(speed=1.0), Pause(run_id="a"), SetSpeed(speed=None)]
    for command in sent:
        mailbox.post(command)
    assert mailbox.take() == sent
    assert mailbox.take() == []


def test_only_urgent_commands_interrupt_and_only_until_they_are_read() -> None:
    mailbox = Mailbox()
    mailbox.post(Pause(run_id="a"))
    assert not mailbox.interrupts()
    mailbox.post(Close(run_id="a"))
    assert mailbox.interrupts()
    mailbox.take()
    assert not mailbox.interrupts()


def test_a_command_ends_a_wait_without_limit() -> None:
    mailbox, waiting = Mailbox(), threading.Event()
    read: list[object] = []

    def wait() -> None:
        waiting.set()
        read.extend(mailbox.take(None))

    reader = threading.Thread(target=wait)
    reader.start()
    waiting.wait()
    mailbox.post(SetSpeed(speed=2.0))
    reader.join(60)
    assert read == [SetSpeed(speed=2.0)]


def test_a_wait_ends_by_itself_after_its_time_and_uses_no_processor() -> None:
    began, used = time.monotonic(), time.thread_time()
    assert Mailbox().take(0.05) == []
    assert time.monotonic() - began >= 0.045
    assert time.thread_time() - used < 0.02
