"""Run a program on a kernel that seems older: older.py [--no-namespaces] [--no-openat2] VERSION PROGRAM...

VERSION is the one that Landlock reports: 0 is the kernel's own, `none` is a kernel without Landlock. The program runs in
its own session, so that a stray signal reaches no other process.
"""

import ctypes
import errno
import fcntl
import itertools
import os
import select
import struct
import sys

X86 = os.uname().machine == "x86_64"
LANDLOCK_CREATE_RULESET, OPENAT2, UNSHARE = 444, 437, 272 if X86 else 97
PR_SET_NO_NEW_PRIVS, SECCOMP, LISTENER = 38, 317 if X86 else 277, 8
LOAD, EQUAL, RETURN = 0x20, 0x15, 0x06
ALLOW, ASK, FAIL, GO_ON = 0x7FFF0000, 0x7FC00000, 0x00050000, 1
RECEIVE, ANSWER = 0xC0502100, 0xC0182101


def listen(refused):
    """Intercept each creation of a ruleset by this process and its descendants. Refuse the calls in `refused`."""
    rows = [
        (LOAD, 0, 0, 0),
        (EQUAL, 0, 1, LANDLOCK_CREATE_RULESET),
        (RETURN, 0, 0, ASK),
    ]
    for call, error in refused.items():
        rows += [(EQUAL, 0, 1, call), (RETURN, 0, 0, FAIL | error)]
    rows.append((RETURN, 0, 0, ALLOW))
    text = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *row) for row in rows))
    program = ctypes.create_string_buffer(struct.pack("HL", len(rows), ctypes.addressof(text)))
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    asked = libc.syscall(SECCOMP, 1, LISTENER, program)
    if asked < 0:
        sys.exit("the filter does not hold: " + os.strerror(ctypes.get_errno()))
    return asked


def answer(asked, version):
    question = bytearray(80)
    try:
        fcntl.ioctl(asked, RECEIVE, question)
        number, attributes, _, flags = struct.unpack_from("Q24xQQQ", question)
        if version == "none":
            reply = (0, -errno.ENOSYS, 0)
        elif version != "0" and attributes == 0 and flags == 1:
            reply = (int(version), 0, 0)
        else:
            reply = (0, 0, GO_ON)
        fcntl.ioctl(asked, ANSWER, bytearray(struct.pack("QqiI", number, *reply)))
    except OSError:
        # The process that asked has ended.
        pass


def main():
    if os.getpgrp() != os.getpid():
        os.setsid()
    known = {"--no-namespaces": (UNSHARE, errno.EPERM), "--no-openat2": (OPENAT2, errno.ENOSYS)}
    options = list(itertools.takewhile(known.__contains__, sys.argv[1:]))
    version, *program = sys.argv[1 + len(options) :]
    asked = listen(dict(known[option] for option in options))
    child = os.fork()
    if child == 0:
        os.execv(program[0], program)
    ended = os.pidfd_open(child)
    while True:
        ready, _, _ = select.select([asked, ended], [], [])
        if ended in ready:
            sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) & 0xFF)
        answer(asked, version)


main()
