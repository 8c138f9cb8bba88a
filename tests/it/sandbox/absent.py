"""Runs a program on a kernel without Landlock: every call that asks for it is answered ENOSYS."""

import ctypes
import os
import struct
import sys

LANDLOCK_CREATE_RULESET = 444
PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS = 22, 38
LOAD, EQUAL, RETURN = 0x20, 0x15, 0x06
ALLOW, ENOSYS = 0x7FFF0000, 0x00050000 | 38


def main():
    rows = [
        (LOAD, 0, 0, 0),
        (EQUAL, 0, 1, LANDLOCK_CREATE_RULESET),
        (RETURN, 0, 0, ENOSYS),
        (RETURN, 0, 0, ALLOW),
    ]
    rows = b"".join(struct.pack("HBBI", *row) for row in rows)
    text = ctypes.create_string_buffer(rows)
    program = ctypes.create_string_buffer(
        struct.pack("HL", len(rows) // 8, ctypes.addressof(text))
    )
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or libc.prctl(
        PR_SET_SECCOMP, 2, ctypes.byref(program), 0, 0
    ):
        sys.exit("the filter does not hold: " + os.strerror(ctypes.get_errno()))
    os.execv(sys.argv[1], sys.argv[1:])


main()
