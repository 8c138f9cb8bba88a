"""Hostile actions, one per row. Each either does the action of its name or raises.

    setup DIR        makes the files that the rows use
    run SCENE KINDS  runs every row for these KINDS (user,root,setuid); prints one JSON object per line

A row that returns False did nothing. Unconfined, every row must succeed. Confined, none may; the level that may write
the workspace skips `work` rows. The files of this directory are one program.
"""

import ctypes
import errno
import fcntl
import json
import mmap
import os
import platform
import resource
import signal
import socket
import struct
import subprocess
import sys
import time

ROWS = []
LIBC = ctypes.CDLL(None, use_errno=True)
X86 = platform.machine() == "x86_64"

# Numbers of calls on x86_64 and aarch64; from 424 on they are the same.
NUMBERS = {
    "open": (2, None), "chmod": (90, None), "chown": (92, None), "utime": (132, None),
    "utimes": (235, None), "socket": (41, 198), "clone": (56, 220), "ptrace": (101, 117),
    "syslog": (103, 116), "setpriority": (141, 140), "adjtimex": (159, 171), "setxattr": (188, 5),
    "request_key": (249, 218), "add_key": (248, 217), "keyctl": (250, 219), "ioprio_set": (251, 30),
    "unshare": (272, 97), "perf_event_open": (298, 241), "fanotify_init": (300, 262),
    "name_to_handle_at": (303, 264), "open_by_handle_at": (304, 265), "setns": (308, 268),
    "process_vm_readv": (310, 270), "process_vm_writev": (311, 271), "kcmp": (312, 272),
    "bpf": (321, 280), "userfaultfd": (323, 282), "tgkill": (234, 131), "tkill": (200, 130),
    "rt_sigqueueinfo": (129, 138), "shmget": (29, 194), "msgget": (68, 186), "semget": (64, 190),
    "mq_open": (240, 180), "mq_unlink": (241, 181), "umount2": (166, 39), "mount": (165, 40), "renameat2": (316, 276),
    "ioctl": (16, 29), "setrlimit": (160, 164), "creat": (85, None), "reboot": (169, 142), "init_module": (175, 105),
    "move_pages": (279, 239), "get_robust_list": (274, 100), "process_madvise": (440, 440),
    "process_mrelease": (448, 448), "truncate": (76, 45), "sched_setscheduler": (144, 119), "migrate_pages": (256, 238),
    "pidfd_send_signal": (424, 424), "io_uring_setup": (425, 425), "open_tree": (428, 428),
    "inotify_init": (253, None), "inotify_init1": (294, 26), "inotify_add_watch": (254, 27),
    "fsopen": (430, 430), "clone3": (435, 435), "openat2": (437, 437), "pidfd_getfd": (438, 438),
    "pidfd_open": (434, 434), "mount_setattr": (442, 442), "fchmodat2": (452, 452),
    "setxattrat": (463, 463), "file_setattr": (469, 469), "prlimit64": (302, 261),
    "memfd_create": (319, 279), "memfd_secret": (447, 447), "io_setup": (206, 0), "vmsplice": (278, 75),
    "personality": (135, 92), "modify_ldt": (154, None), "seccomp": (317, 277), "statmount": (457, 457),
    "landlock_create_ruleset": (444, 444),
}
AT = -100
X32 = 0x40000000


def call(name, *arguments, twin=0):
    number = NUMBERS[name][0 if X86 else 1]
    if number is None:
        raise OSError(errno.ENOSYS, name)
    values = [ctypes.c_char_p(a) if isinstance(a, bytes) else
              ctypes.c_long(a) if isinstance(a, int) else a for a in arguments]
    ctypes.set_errno(0)
    result = LIBC.syscall(ctypes.c_long(number + twin), *values)
    if result == -1:
        raise OSError(ctypes.get_errno(), f"{name}: {os.strerror(ctypes.get_errno())}")
    return result


def refused_as(error, action):
    """Return True if `action` fails for another reason than a refusal."""
    try:
        action()
    except OSError as failure:
        if failure.errno == error:
            return True
        raise
    return True


def row(name, needs="user", lacks="", work=False):
    """`needs`: the kind of run that the row needs. `lacks`: the reason why a machine may be unable to run it."""
    def add(function):
        ROWS.append((name, needs, lacks, work, function))
        return function
    return add


class Place:
    """The files of one row: a file, a directory, and the rest of the scene."""

    def __init__(self, scene, number):
        self.__dict__.update(scene)
        self.file = f"{self.ws}/rows/f{number}"
        self.other = f"{self.ws}/rows/g{number}"
        self.new = f"{self.ws}/rows/n{number}"
        self.dir = f"{self.ws}/rows/d{number}"


def secret(path):
    with open(path, "rb") as file:
        return b"hunter2" in file.read()


def put(path, flags=os.O_WRONLY | os.O_CREAT, text=b"x"):
    descriptor = os.open(path, flags, 0o644)
    os.write(descriptor, text)
    os.close(descriptor)


def open_to_write(path):
    os.close(os.open(path, os.O_WRONLY))


def openat2(path, flags):
    return call("openat2", AT, path.encode(), struct.pack("QQQ", flags, 0, 0), 24)


def add_flag(descriptor, flag):
    # Keeps the flags that are set: ext4 cannot always remove the flag for extents.
    flags = bytearray(8)
    fcntl.ioctl(descriptor, 0x80086601, flags)
    before = bytes(flags)
    flags[0] |= flag
    fcntl.ioctl(descriptor, 0x40086602, bytes(flags))
    return before


def in_child(action):
    """Run an action that cannot be undone in its own process."""
    child = os.fork()
    if child == 0:
        try:
            action()
        except OSError:
            os._exit(1)
        os._exit(0)
    return os.waitpid(child, 0)[1] == 0


def state(pid):
    with open(f"/proc/{pid}/stat") as file:
        return file.read().rsplit(") ", 1)[1][0]


with open("/proc/sys/kernel/core_pattern") as _file:
    NO_CORES = "" if _file.read().startswith("core") else "the system takes cores elsewhere"

