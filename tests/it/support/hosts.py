"""Run a program that sees another file in the place of /etc/hosts: hosts.py FILE PROGRAM...

A change of the file is seen at once. So a test can give a name an address, and later another one.
"""

import ctypes
import os
import sys

NEW_MOUNTS, NEW_USER = 0x00020000, 0x10000000
RECURSIVE, PRIVATE, BIND = 1 << 14, 1 << 18, 1 << 12


def done(name, status):
    if status != 0:
        sys.exit(f"{name}: {os.strerror(ctypes.get_errno())}")


libc = ctypes.CDLL(None, use_errno=True)
user, group = os.geteuid(), os.getegid()
if user == 0:
    done("mounts", libc.unshare(NEW_MOUNTS))
else:
    done("user", libc.unshare(NEW_MOUNTS | NEW_USER))
    for file, text in [("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")]:
        with open(f"/proc/self/{file}", "w", encoding="utf8") as out:
            out.write(text)
done("private", libc.mount(b"none", b"/", None, RECURSIVE | PRIVATE, None))
done("hosts", libc.mount(os.fsencode(sys.argv[1]), b"/etc/hosts", None, BIND, None))
os.execvp(sys.argv[2], sys.argv[2:])
