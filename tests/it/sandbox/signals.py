"""Try to stop and to kill the backend that started it, the backend's guard, and a process of the person.

    signals.py FILE deadly|harmless

It prints every way by which one of them is reached. The file has the numbers of the three, as soon as they are known.
"""

import ctypes
import os
import signal
import struct
import sys
import time

LIBC = ctypes.CDLL(None, use_errno=True)
X86 = os.uname().machine == "x86_64"
TKILL, TGKILL, QUEUE = (200, 234, 129) if X86 else (130, 131, 138)


def call(number, *arguments):
    if LIBC.syscall(number, *arguments) == -1:
        raise OSError(ctypes.get_errno(), "refused")


def join(group, number):
    """Join a group and signal its processes."""
    os.setpgid(0, group)
    os.kill(0, number)


def ways(pid, number):
    information = struct.pack("iii", number, 0, -1) + bytes(116)
    yield "by its number", lambda: os.kill(pid, number)
    yield "by its thread", lambda: call(TKILL, pid, number)
    yield "by its process and thread", lambda: call(TGKILL, pid, pid, number)
    yield "by a queue", lambda: call(QUEUE, pid, number, information)
    yield "by a descriptor", lambda: signal.pidfd_send_signal(os.pidfd_open(pid), number)
    for group in groups(pid):
        yield "by its group", lambda group=group: os.killpg(group, number)
        yield "by joining its group", lambda group=group: join(group, number)
        yield "by the priority of its group", lambda group=group: lower(group)


def groups(pid):
    """Return the groups of a process that has a number here, or what may be one of it."""
    try:
        return {os.getpgid(pid), os.getsid(pid)}
    except ProcessLookupError:
        return {pid}


def lower(group):
    os.setpgid(0, group)
    os.setpriority(os.PRIO_PGRP, 0, os.getpriority(os.PRIO_PROCESS, 0))


def attempt(name, act):
    """Run it in its own process, which may receive a signal for another."""
    child = os.fork()
    if child == 0:
        try:
            act()
        except OSError:
            os._exit(0)
        os._exit(1)
    if os.waitpid(child, 0)[1] != 0:
        print(name, flush=True)


def main():
    while not os.path.exists(sys.argv[1]):
        time.sleep(0.01)
    with open(sys.argv[1]) as file:
        targets = dict(zip(("the backend", "its guard", "the person's"), map(int, file.read().split())))
    deadly = [signal.SIGSTOP, signal.SIGTERM, signal.SIGKILL] if sys.argv[2] == "deadly" else []
    for number in [signal.SIGCONT, *deadly]:
        for name, pid in targets.items():
            for way, act in ways(pid, number):
                attempt(f"{name} {way}", act)
    print("done")


main()
