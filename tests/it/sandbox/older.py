"""Run a program on a kernel that reports an older version of Landlock: older.py VERSION PROGRAM...

Version 0 is the kernel's own. The program runs in its own session, so that a stray signal reaches no other process.
"""

import ctypes
import fcntl
import os
import select
import struct
import sys

LANDLOCK_CREATE_RULESET = 444
PR_SET_NO_NEW_PRIVS, SECCOMP, LISTENER = 38, 317 if os.uname().machine == "x86_64" else 277, 8
LOAD, EQUAL, RETURN = 0x20, 0x15, 0x06
ALLOW, ASK, GO_ON = 0x7FFF0000, 0x7FC00000, 1
RECEIVE, ANSWER = 0xC0502100, 0xC0182101


def listen():
    """Intercept each creation of a ruleset by this process and its descendants."""
    rows = [
        (LOAD, 0, 0, 0),
        (EQUAL, 0, 1, LANDLOCK_CREATE_RULESET),
        (RETURN, 0, 0, ASK),
        (RETURN, 0, 0, ALLOW),
    ]
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
        about_version = version != 0 and attributes == 0 and flags == 1
        value, go_on = (version, 0) if about_version else (0, GO_ON)
        fcntl.ioctl(asked, ANSWER, bytearray(struct.pack("QqiI", number, value, 0, go_on)))
    except OSError:
        # The process that asked has ended.
        pass


def main():
    os.setsid()
    asked = listen()
    child = os.fork()
    if child == 0:
        os.execv(sys.argv[2], sys.argv[2:])
    ended = os.pidfd_open(child)
    while True:
        ready, _, _ = select.select([asked, ended], [], [])
        if ended in ready:
            sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) & 0xFF)
        answer(asked, int(sys.argv[1]))


main()
