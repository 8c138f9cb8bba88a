"""Hostile actions, one a row. Each either does what it is named after or raises.

    hostile.py setup DIR        what the rows work on
    hostile.py run SCENE KINDS  every row that can be shown by these KINDS (user,root,setuid);
                                one JSON object a line

A row that returns False did nothing. Run free, every row must do its deed; run confined, none may.
"""

import ctypes
import errno
import fcntl
import json
import mmap
import os
import platform
import signal
import socket
import struct
import subprocess
import sys

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
    "truncate": (76, 45), "sched_setscheduler": (144, 119), "migrate_pages": (256, 238),
    "pidfd_send_signal": (424, 424), "io_uring_setup": (425, 425), "open_tree": (428, 428),
    "inotify_init": (253, None), "inotify_init1": (294, 26), "inotify_add_watch": (254, 27),
    "fsopen": (430, 430), "clone3": (435, 435), "openat2": (437, 437), "pidfd_getfd": (438, 438),
    "pidfd_open": (434, 434), "mount_setattr": (442, 442), "fchmodat2": (452, 452),
    "setxattrat": (463, 463), "file_setattr": (469, 469), "prlimit64": (302, 261),
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
    """True where `action` fails for another reason than being refused."""
    try:
        action()
    except OSError as failure:
        if failure.errno == error:
            return True
        raise
    return True


def row(name, needs="user", lacks=""):
    """`needs`: the kind of run that can show it. `lacks`: why a machine may be unable to show it."""
    def add(function):
        ROWS.append((name, needs, lacks, function))
        return function
    return add


class Place:
    """What one row works on: a file, a directory, and the rest of the scene."""

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


def openat2(path, flags):
    return call("openat2", AT, path.encode(), struct.pack("QQQ", flags, 0, 0), 24)


def add_flag(descriptor, flag):
    # Beside those that are set: ext4 cannot always take away the one for extents.
    flags = bytearray(8)
    fcntl.ioctl(descriptor, 0x80086601, flags)
    before = bytes(flags)
    flags[0] |= flag
    fcntl.ioctl(descriptor, 0x40086602, bytes(flags))
    return before


# Writes of every kind.

@row("create a file in the workspace")
def _(p): put(p.new)
@row("overwrite a file in the workspace")
def _(p): put(p.file, os.O_WRONLY)
@row("append to a file")
def _(p): put(p.file, os.O_WRONLY | os.O_APPEND)
@row("open for reading and writing")
def _(p): put(p.file, os.O_RDWR)
@row("truncate by path")
def _(p): os.truncate(p.file, 0)
@row("empty while opening for reading")
def _(p): os.open(p.file, os.O_RDONLY | os.O_TRUNC)
@row("empty while opening for neither reading nor writing")
def _(p): os.open(p.file, os.O_ACCMODE | os.O_TRUNC)
@row("empty by the oldest call while opening for neither", lacks="" if X86 else "the call is of x86")
def _(p): call("open", p.file.encode(), os.O_ACCMODE | os.O_TRUNC, 0)
@row("empty by openat2 while opening for neither")
def _(p): openat2(p.file, os.O_ACCMODE | os.O_TRUNC)
@row("open a key for neither reading nor writing")
def _(p): os.open(p.home + "/.ssh/id", os.O_ACCMODE)
@row("open a key by openat2 for neither reading nor writing")
def _(p): openat2(p.home + "/.ssh/id", os.O_ACCMODE)
@row("a nameless file in the workspace")
def _(p): os.open(p.dir, os.O_TMPFILE | os.O_RDWR, 0o600)
@row("write through a shared mapping")
def _(p):
    with open(p.file, "r+b") as file:
        mmap.mmap(file.fileno(), 0, mmap.MAP_SHARED)[0:1] = b"x"
@row("allocate room in a file")
def _(p): os.posix_fallocate(os.open(p.file, os.O_WRONLY), 0, 9000)
@row("write by openat2")
def _(p): openat2(p.file, os.O_WRONLY)
@row("write through /proc/self/cwd")
def _(p): put("/proc/self/cwd/" + os.path.relpath(p.file), os.O_WRONLY)
@row("write through /proc/self/root")
def _(p): put("/proc/self/root" + p.file, os.O_WRONLY)
@row("write through a link in TMPDIR")
def _(p):
    link = os.path.join(p.tmp, "link-out")
    os.symlink(p.file, link)
    put(link, os.O_WRONLY)
@row("reopen a descriptor for writing")
def _(p):
    descriptor = os.open(p.file, os.O_RDONLY)
    put(f"/proc/self/fd/{descriptor}", os.O_WRONLY)
@row("write to an inherited descriptor")
def _(p): os.write(p.inherited, b"x")
@row("create a file in the home directory")
def _(p): put(p.home + "/new-file")
@row("create a file beside the workspace")
def _(p): put(p.out + "/new-file")
@row("create a file in /tmp")
def _(p):
    path = f"/tmp/{p.token}"
    put(path)
    os.unlink(path)
@row("create a file in /var/tmp")
def _(p):
    path = f"/var/tmp/{p.token}"
    put(path)
    os.unlink(path)
@row("create a file in /dev/shm")
def _(p):
    path = f"/dev/shm/{p.token}"
    put(path)
    os.unlink(path)
@row("remove a file")
def _(p): os.unlink(p.file)
@row("rename a file")
def _(p): os.rename(p.file, p.new)
@row("replace a file by another")
def _(p): os.replace(p.other, p.file)
@row("exchange two files")
def _(p): call("renameat2", AT, p.file.encode(), AT, p.other.encode(), 2)
@row("rename a directory")
def _(p): os.rename(p.dir, p.new)
@row("move a file out of TMPDIR into the workspace")
def _(p):
    put(p.tmp + "/moved")
    os.rename(p.tmp + "/moved", p.new)
@row("make a directory")
def _(p): os.mkdir(p.new)
@row("remove a directory")
def _(p): os.rmdir(p.dir)
@row("make a symbolic link")
def _(p): os.symlink("x", p.new)
@row("make a hard link in the workspace")
def _(p): os.link(p.file, p.new)
@row("hard link a file of the workspace into TMPDIR and write there")
def _(p):
    os.link(p.file, p.tmp + "/linked")
    put(p.tmp + "/linked", os.O_WRONLY)
@row("make a named pipe")
def _(p): os.mkfifo(p.new)
@row("make a socket node")
def _(p): os.mknod(p.new, 0o140600)
@row("make a device in TMPDIR and read it", needs="root")
def _(p):
    os.mknod(p.tmp + "/device", 0o20600, os.makedev(1, 5))
    os.read(os.open(p.tmp + "/device", os.O_RDONLY), 1)
@row("add to git's configuration")
def _(p): put(p.ws + "/.git/config", os.O_WRONLY | os.O_APPEND, b"\n")
@row("make a hook")
def _(p): put(p.ws + "/.git/hooks/post-checkout")
@row("write by a handle", needs="root")
def _(p):
    handle = ctypes.create_string_buffer(struct.pack("Ii", 128, 0) + bytes(128))
    mount = ctypes.c_int()
    call("name_to_handle_at", AT, p.file.encode(), handle, ctypes.byref(mount), 0)
    call("open_by_handle_at", os.open(p.ws, os.O_RDONLY), handle, os.O_WRONLY)
@row("write to a setting of the kernel", needs="root")
def _(p):
    path = "/proc/sys/kernel/printk_ratelimit"
    with open(path, "rb") as file:
        same = file.read()
    put(path, os.O_WRONLY, same)
@row("write to the kernel's log", needs="root")
def _(p): put("/dev/kmsg", os.O_WRONLY, b"")
@row("make a control group", needs="root", lacks="no control groups of version 1, or not this user's")
def _(p):
    os.mkdir(f"/sys/fs/cgroup/pids/{p.token}")
    os.rmdir(f"/sys/fs/cgroup/pids/{p.token}")

# Modes, owners, times, attributes.

@row("change a mode by path")
def _(p): os.chmod(p.file, 0o777)
@row("change the mode of an open file")
def _(p): os.fchmod(os.open(p.file, os.O_RDONLY), 0o777)
@row("change a mode by fchmodat2", lacks="the call is of Linux 6.6")
def _(p): call("fchmodat2", AT, p.file.encode(), 0o777, 0)
@row("change a mode in the home directory")
def _(p): os.chmod(p.home + "/.ssh/id", 0o644)
@row("change the mode of a file in TMPDIR to setuid")
def _(p):
    put(p.tmp + "/setuid")
    os.chmod(p.tmp + "/setuid", 0o4755)
@row("change an owner by path")
def _(p): os.chown(p.file, os.getuid(), os.getgid())
@row("give a file to somebody else", needs="root")
def _(p): os.chown(p.file, 12345, 12345)
@row("change the owner of a link")
def _(p): os.lchown(p.file, os.getuid(), os.getgid())
@row("change the owner of an open file")
def _(p): os.fchown(os.open(p.file, os.O_RDONLY), os.getuid(), os.getgid())
@row("set a time by path")
def _(p): os.utime(p.file, (1, 1))
@row("set a time to now")
def _(p): os.utime(p.file)
@row("set the time of an open file")
def _(p): os.utime(os.open(p.file, os.O_RDONLY), (1, 1))
@row("set a time by the oldest call", lacks="" if X86 else "the call is of x86")
def _(p): call("utime", p.file.encode(), 0)
@row("set a time by utimes", lacks="" if X86 else "the call is of x86")
def _(p): call("utimes", p.file.encode(), 0)
@row("set an extended attribute")
def _(p): os.setxattr(p.file, "user.x", b"x")
@row("set an extended attribute of an open file")
def _(p): os.setxattr(os.open(p.file, os.O_RDONLY), "user.x", b"x")
@row("remove an extended attribute")
def _(p): os.removexattr(p.other, "user.there")
@row("set an extended attribute by setxattrat", lacks="the call is of Linux 6.13")
def _(p):
    value = ctypes.create_string_buffer(b"x")
    arguments = struct.pack("QII", ctypes.addressof(value), 1, 0)
    call("setxattrat", AT, p.file.encode(), 0, b"user.y", arguments, 16)
@row("set a flag of an inode")
def _(p): add_flag(os.open(p.file, os.O_RDONLY), 0x40)
@row("set a flag of an inode by the newer request")
def _(p):
    descriptor = os.open(p.file, os.O_RDONLY)
    flags = bytearray(28)
    fcntl.ioctl(descriptor, 0x801C581F, flags)
    flags[0] |= 0x80
    fcntl.ioctl(descriptor, 0x401C5820, bytes(flags))
@row("set a flag of an inode by file_setattr", lacks="the call is of Linux 6.17")
def _(p): call("file_setattr", AT, p.file.encode(), struct.pack("QIIII", 0x80, 0, 0, 0, 0), 24, 0)
@row("make a file immutable", needs="root")
def _(p):
    descriptor = os.open(p.file, os.O_RDONLY)
    before = add_flag(descriptor, 0x10)
    fcntl.ioctl(descriptor, 0x40086602, before)
@row("change a mode by the x32 call", lacks="kernels are seldom built with x32")
def _(p): call("chmod", p.file.encode(), 0o777, twin=X32)

# Who acts for us: sockets.

def unix(path, kind=socket.SOCK_STREAM):
    with socket.socket(socket.AF_UNIX, kind) as connection:
        connection.connect(path)

@row("talk to the editor's socket")
def _(p): unix(p.ws + "/editor.sock")
@row("talk to a socket outside, as docker's")
def _(p): unix(p.out + "/docker.sock")
@row("talk to an abstract socket")
def _(p): unix("\0" + p.token)
@row("send a datagram to a socket outside, as the log's")
def _(p): unix(p.out + "/log.sock", socket.SOCK_DGRAM)
@row("point a pair of datagram sockets outside")
def _(p):
    one, _ = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    one.sendto(b"x", p.out + "/log.sock")
@row("point a pair of raw sockets outside, which are datagram sockets by another name")
def _(p):
    one, _ = socket.socketpair(socket.AF_UNIX, socket.SOCK_RAW)
    one.sendto(b"x", p.out + "/log.sock")
@row("reconnect a pair of datagram sockets")
def _(p):
    one, _ = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    one.connect(p.out + "/log.sock")
@row("listen on a socket of one's own")
def _(p):
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(p.tmp + "/own.sock")
        listener.listen()
@row("connect by TCP")
def _(p): socket.create_connection(("127.0.0.1", p.tcp)).close()
@row("connect by TCP over IPv6", lacks="IPv6 may be off")
def _(p): refused_as(errno.ECONNREFUSED, lambda: socket.create_connection(("::1", 9)))
@row("listen by TCP")
def _(p): socket.create_server(("127.0.0.1", 0)).close()
@row("send by UDP")
def _(p):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.sendto(b"x", ("127.0.0.1", p.udp))
@row("ask netlink for routes")
def _(p): socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0).close()
@row("listen to netlink's events")
def _(p): socket.socket(socket.AF_NETLINK, socket.SOCK_DGRAM, 15).close()
@row("a raw socket", needs="root")
def _(p): socket.socket(socket.AF_INET, socket.SOCK_RAW, 1).close()
@row("a packet socket", needs="root")
def _(p): socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0).close()
@row("a socket of the kernel's ciphers", lacks="may not be built in")
def _(p): socket.socket(socket.AF_ALG, socket.SOCK_SEQPACKET, 0).close()
@row("a socket to the host", lacks="may not be built in")
def _(p): socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM).close()
@row("a socket by the x32 call", lacks="kernels are seldom built with x32")
def _(p): call("socket", 1, 1, 0, twin=X32)
@row("an io_uring")
def _(p): call("io_uring_setup", 4, ctypes.create_string_buffer(120))
@row("find the editor in the environment")
def _(p): return any(name.startswith("NVIM") for name in os.environ)
@row("find the agent of keys in the environment")
def _(p): return "SSH_AUTH_SOCK" in os.environ
@row("find the bus in the environment")
def _(p): return any(name.startswith("DBUS_") for name in os.environ)

# Other processes.

@row("attach to another process")
def _(p):
    call("ptrace", 16, p.victim, 0, 0)
    os.waitpid(p.victim, 0x40000000)
    call("ptrace", 17, p.victim, 0, 0)
@row("seize another process")
def _(p):
    call("ptrace", 0x4206, p.victim, 0, 0)
@row("be traced by one's parent")
def _(p):
    child = os.fork()
    if child == 0:
        try:
            call("ptrace", 0, 0, 0, 0)
        except OSError:
            os._exit(1)
        os._exit(0)
    return os.waitpid(child, 0)[1] == 0
@row("read the memory of another process")
def _(p):
    vector = struct.pack("QQ", ctypes.addressof(ctypes.create_string_buffer(8)), 8)
    return refused_as(errno.EFAULT, lambda: call("process_vm_readv", p.victim, vector, 1, struct.pack("QQ", 8, 8), 1, 0))
@row("write the memory of another process")
def _(p):
    vector = struct.pack("QQ", ctypes.addressof(ctypes.create_string_buffer(8)), 8)
    return refused_as(errno.EFAULT, lambda: call("process_vm_writev", p.victim, vector, 1, struct.pack("QQ", 8, 8), 1, 0))
@row("read the environment of another process")
def _(p): return secret(f"/proc/{p.victim}/environ")
@row("read the environment of the process that started us", needs="root")
def _(p):
    with open(f"/proc/{p.parent}/environ", "rb") as file:
        return bool(file.read())
@row("open the memory of another process")
def _(p): os.open(f"/proc/{p.victim}/mem", os.O_RDWR)
@row("read the memory of another process as a file")
def _(p): os.open(f"/proc/{p.victim}/mem", os.O_RDONLY)
@row("read the map of another process")
def _(p):
    with open(f"/proc/{p.victim}/maps") as file:
        return bool(file.read())
@row("see what another process has open")
def _(p): return bool(os.readlink(f"/proc/{p.victim}/fd/0"))
@row("reopen what another process has open")
def _(p): os.open(f"/proc/{p.victim}/fd/0", os.O_RDONLY)
@row("read a secret through the root of another process")
def _(p): return secret(f"/proc/{p.victim}/root{p.home}/.ssh/id")
@row("read a secret through the directory of another process")
def _(p): return secret(f"/proc/{p.victim}/cwd/id")
@row("take a descriptor of another process", lacks="the call is of Linux 5.6, and Yama may refuse it")
def _(p): call("pidfd_getfd", call("pidfd_open", p.victim, 0), 0, 0)
@row("compare with another process", lacks="may not be built in, and Yama may refuse it")
def _(p): call("kcmp", os.getpid(), p.victim, 2, 0, 0)
@row("signal another process")
def _(p): os.kill(p.victim, signal.SIGCONT)
@row("signal the process that started us", needs="root")
def _(p): os.kill(p.parent, signal.SIGCONT)
@row("signal another group")
def _(p): os.killpg(p.victim, signal.SIGCONT)
@row("signal a thread of another process")
def _(p): call("tgkill", p.victim, p.victim, signal.SIGCONT)
@row("signal by the oldest call")
def _(p): call("tkill", p.victim, signal.SIGCONT)
@row("queue a signal for another process")
def _(p): call("rt_sigqueueinfo", p.victim, signal.SIGCONT, struct.pack("iii", signal.SIGCONT, 0, -1) + bytes(116))
@row("signal by a descriptor")
def _(p): call("pidfd_send_signal", call("pidfd_open", p.victim, 0), signal.SIGCONT, 0, 0)
@row("lower the priority of another process")
def _(p): os.setpriority(os.PRIO_PROCESS, p.victim, 5)
@row("lower the priority of a person's processes")
def _(p): os.setpriority(os.PRIO_PGRP, p.victim, 6)
@row("lower the disk priority of another process")
def _(p): call("ioprio_set", 1, p.victim, (3 << 13))
@row("bind another process to a processor")
def _(p): os.sched_setaffinity(p.victim, {min(os.sched_getaffinity(0))})
@row("change the scheduling of another process")
def _(p): os.sched_setscheduler(p.victim, os.SCHED_BATCH, os.sched_param(0))
@row("limit another process")
def _(p): call("prlimit64", p.victim, 4, struct.pack("QQ", 0, 0), 0)
@row("have another process killed first")
def _(p): put(f"/proc/{p.victim}/oom_score_adj", os.O_WRONLY, b"999")
@row("watch the machine's counters", lacks="perf_event_paranoid may refuse it, and a virtual machine has none")
def _(p):
    attribute = ctypes.create_string_buffer(struct.pack("IIQ", 1, 112, 0) + bytes(96))
    call("perf_event_open", attribute, 0, -1, -1, 0)

# Credentials.

for _name in (".ssh/id", ".aws/credentials", ".gnupg/key", ".kube/config", ".netrc", ".docker/config.json",
              ".git-credentials", ".config/git/credentials", ".cargo/credentials.toml", ".npmrc", ".pypirc",
              ".bash_history", ".python_history", ".mozilla/profile", ".config/gh/hosts.yml", ".pgpass",
              ".password-store/key", ".local/share/keyrings/login", ".local/state/co/session", ".config/co/key",
              "other-project/.env"):
    row(f"read ~/{_name}")(lambda p, name=_name: secret(f"{p.home}/{name}"))

@row("read a key through a link in the workspace")
def _(p): return secret(p.ws + "/link-to-key")
@row("read a key through a link made in TMPDIR")
def _(p):
    os.symlink(p.home + "/.ssh", p.tmp + "/keys")
    return secret(p.tmp + "/keys/id")
@row("read a key through /proc/self/root")
def _(p): return secret("/proc/self/root" + p.home + "/.ssh/id")
@row("read a key through dots")
def _(p): return secret(p.ws + "/rows/../../home/.cargo/bin/../../.ssh/id")
@row("read a key through a handle on its path")
def _(p): return secret(f"/proc/self/fd/{os.open(p.home + '/.ssh/id', os.O_PATH)}")
@row("read a key by entering its directory")
def _(p):
    os.chdir(p.home + "/.ssh")
    try:
        return secret("id")
    finally:
        os.chdir(p.ws)
@row("read a key through a hard link in TMPDIR")
def _(p):
    os.link(p.home + "/.ssh/id", p.tmp + "/id")
    return secret(p.tmp + "/id")
@row("move a key into TMPDIR and back")
def _(p):
    os.rename(p.home + "/.ssh/id", p.tmp + "/id-moved")
    os.rename(p.tmp + "/id-moved", p.home + "/.ssh/id")
@row("read a key by a handle", needs="root")
def _(p):
    handle = ctypes.create_string_buffer(struct.pack("Ii", 128, 0) + bytes(128))
    mount = ctypes.c_int()
    call("name_to_handle_at", AT, (p.home + "/.ssh/id").encode(), handle, ctypes.byref(mount), 0)
    call("open_by_handle_at", os.open(p.ws, os.O_RDONLY), handle, os.O_RDONLY)
@row("have a key read by another program")
def _(p):
    done = subprocess.run(["cat", p.home + "/.ssh/id"], capture_output=True, check=False)
    return b"hunter2" in done.stdout
@row("list the names of keys")
def _(p): return bool(os.listdir(p.home + "/.ssh"))
@row("list the home directory")
def _(p): return bool(os.listdir(p.home))
@row("hear of what is done in the directory of keys")
def _(p): call("inotify_add_watch", call("inotify_init1", 0), (p.home + "/.ssh").encode(), 0xFFF)
@row("hear of it by the older call", lacks="" if X86 else "the call is of x86")
def _(p): call("inotify_add_watch", call("inotify_init"), (p.home + "/.ssh").encode(), 0xFFF)
@row("hear of what is done in the workspace")
def _(p): call("inotify_add_watch", call("inotify_init1", 0), p.ws.encode(), 0xFFF)
@row("hear of what is done in the directory of keys by the oldest way")
def _(p): fcntl.fcntl(os.open(p.home + "/.ssh", os.O_RDONLY), fcntl.F_NOTIFY, fcntl.DN_ACCESS)
@row("hear of what is done anywhere", lacks="may not be built in, or root's alone")
def _(p): call("fanotify_init", 0x200, 0)
@row("read the passwords' file", needs="root")
def _(p):
    with open("/etc/shadow", "rb") as file:
        return bool(file.read())
@row("read the disk", needs="root", lacks="a container has none")
def _(p): os.open("/dev/" + p.disk, os.O_RDONLY)

# Locks on what others use.

LOCK = struct.pack("hhqqi", fcntl.F_RDLCK, 0, 0, 0, 0)

for _name, _command in (("F_SETLK", fcntl.F_SETLK), ("F_SETLKW", fcntl.F_SETLKW), ("F_OFD_SETLK", 37),
                        ("F_OFD_SETLKW", 38)):
    row(f"lock a file that may be read by {_name}")(
        lambda p, command=_command: fcntl.fcntl(os.open(p.file, os.O_RDONLY), command, LOCK) and None)
for _name, _how in (("shared", fcntl.LOCK_SH), ("alone", fcntl.LOCK_EX | fcntl.LOCK_NB)):
    row(f"lock a file that may be read by flock, {_name}")(
        lambda p, how=_how: fcntl.flock(os.open(p.file, os.O_RDONLY), how))
@row("hold up whoever opens a file")
def _(p): fcntl.fcntl(os.open(p.file, os.O_RDONLY), fcntl.F_SETLEASE, fcntl.F_RDLCK)

# Another view of the system.

def in_child(action):
    """Does it in a process that ends, for what cannot be undone."""
    child = os.fork()
    if child == 0:
        try:
            action()
        except OSError:
            os._exit(1)
        os._exit(0)
    return os.waitpid(child, 0)[1] == 0

@row("a user namespace")
def _(p): return in_child(lambda: call("unshare", 0x10000000))
@row("a user and mount namespace")
def _(p): return in_child(lambda: call("unshare", 0x10020000))
@row("a network namespace", needs="root")
def _(p): return in_child(lambda: call("unshare", 0x40000000))
@row("a process in a user namespace")
def _(p):
    child = call("clone", 0x10000000 | signal.SIGCHLD, 0, 0, 0, 0)
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
@row("a process in a user namespace by the newer call", lacks="a container's own filter may refuse the call")
def _(p):
    arguments = struct.pack("8Q", 0x10000000, 0, 0, 0, signal.SIGCHLD, 0, 0, 0)
    child = call("clone3", arguments, 64)
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
@row("join a namespace", needs="root")
def _(p): return in_child(lambda: call("setns", os.open("/proc/self/ns/uts", os.O_RDONLY), 0))
@row("bind a directory of keys into the workspace", needs="root")
def _(p):
    call("mount", (p.home + "/.ssh").encode(), p.dir.encode(), 0, 4096, 0)
    call("umount2", p.dir.encode(), 0)
@row("mount an empty file system", needs="root")
def _(p):
    call("mount", b"none", p.dir.encode(), b"tmpfs", 0, 0)
    call("umount2", p.dir.encode(), 0)
@row("take a copy of a mount", needs="root")
def _(p): call("open_tree", AT, p.ws.encode(), 1)
@row("open a file system by the newer call", needs="root")
def _(p): call("fsopen", b"tmpfs", 0)
@row("another root directory", needs="root")
def _(p): return in_child(lambda: os.chroot(p.ws))
@row("make mounts read-only", needs="root", lacks="refused in a namespace that does not own the mount")
def _(p): call("mount_setattr", AT, p.dir.encode(), 0, bytes(32), 32)

# Keys, privileges, the terminal, the machine.

@row("add a key")
def _(p): call("add_key", b"user", b"co-test", b"x", 1, -2)
@row("ask for a key")
def _(p): return refused_as(errno.ENOKEY, lambda: call("request_key", b"user", b"co-absent", 0, 0))
@row("read one's keyring")
def _(p): call("keyctl", 0, -4, 1)
@row("hold capabilities", needs="root")
def _(p):
    with open("/proc/self/status") as file:
        return any(line.startswith(("CapEff", "CapPrm", "CapBnd", "CapAmb", "CapInh")) and int(line.split()[1], 16)
                   for line in file)
@row("be able to gain privileges")
def _(p):
    with open("/proc/self/status") as file:
        return any(line.split() == ["NoNewPrivs:", "0"] for line in file)
@row("become root by a setuid program", needs="setuid")
def _(p):
    done = subprocess.run([p.ws + "/setuid-id", "-u"], capture_output=True, text=True, check=False)
    return done.stdout.strip() == "0"
@row("become somebody else", needs="root")
def _(p): return in_child(lambda: os.setuid(12345))
def own_terminal():
    os.setsid()
    fcntl.ioctl(0, 0x540E, 0)

def set_modes(descriptor):
    modes = bytearray(60)
    fcntl.ioctl(descriptor, 0x5401, modes)
    fcntl.ioctl(descriptor, 0x5402, bytes(modes))

def set_size(descriptor):
    fcntl.ioctl(descriptor, 0x5414, struct.pack("HHHH", 24, 80, 0, 0))

@row("type into the terminal", needs="root", lacks="dev.tty.legacy_tiocsti may be off")
def _(p):
    def type_in():
        own_terminal()
        fcntl.ioctl(0, 0x5412, b"x")
    return in_child(type_in)
@row("write onto a terminal")
def _(p): put(p.terminal, os.O_WRONLY | os.O_NOCTTY)
@row("change the modes of a terminal")
def _(p): set_modes(os.open(p.terminal, os.O_RDWR | os.O_NOCTTY))
@row("change the modes of a terminal opened for neither reading nor writing")
def _(p): set_modes(os.open(p.terminal, os.O_ACCMODE | os.O_NOCTTY))
@row("change the modes of a terminal opened so by openat2")
def _(p): set_modes(openat2(p.terminal, os.O_ACCMODE | os.O_NOCTTY))
@row("change the size of a terminal opened for neither reading nor writing")
def _(p): set_size(os.open(p.terminal, os.O_ACCMODE | os.O_NOCTTY))
@row("change the size of a terminal opened so by openat2")
def _(p): set_size(openat2(p.terminal, os.O_ACCMODE | os.O_NOCTTY))
@row("open one's own terminal for neither reading nor writing")
def _(p):
    def act():
        own_terminal()
        descriptor = os.open("/dev/tty", os.O_ACCMODE)
        set_modes(descriptor)
        set_size(descriptor)
    return in_child(act)
@row("make a terminal", lacks="/dev/pts may not be there")
def _(p): os.openpty()
@row("name the machine", needs="root")
def _(p): socket.sethostname(socket.gethostname())
@row("read the kernel's messages", needs="root")
def _(p): call("syslog", 3, ctypes.create_string_buffer(64), 64)
@row("look at the clock's adjustment")
def _(p): call("adjtimex", ctypes.create_string_buffer(256))
@row("load a program into the kernel", needs="root", lacks="may not be built in, or locked down")
def _(p): call("bpf", 0, ctypes.create_string_buffer(struct.pack("IIIII", 2, 4, 8, 1, 0) + bytes(100)), 72)
@row("handle page faults", needs="root", lacks="may not be built in, or locked down")
def _(p): call("userfaultfd", 0)
@row("watch all files", needs="root", lacks="may not be built in")
def _(p): call("fanotify_init", 0, 0)
@row("shared memory by number")
def _(p): LIBC.shmctl(call("shmget", 0, 4096, 0o1600), 0, None)
@row("a queue by number")
def _(p): LIBC.msgctl(call("msgget", 0, 0o1600), 0, None)
@row("semaphores by number")
def _(p): LIBC.semctl(call("semget", 0, 1, 0o1600), 0, 0)
@row("a queue by name", lacks="may not be built in")
def _(p):
    call("mq_open", p.token.encode(), 0o102, 0o600, 0)
    call("mq_unlink", p.token.encode())


def setup(directory):
    os.makedirs(directory + "/rows")
    for number in range(len(ROWS)):
        for kind in "fg":
            put(f"{directory}/rows/{kind}{number}", text=b"before\n")
        os.setxattr(f"{directory}/rows/g{number}", "user.there", b"x")
        os.mkdir(f"{directory}/rows/d{number}")


def late(*_):
    raise TimeoutError("took too long")


def run(scene, kinds):
    scene.update(parent=os.getppid())
    signal.signal(signal.SIGALRM, late)
    if scene["free"] and "root" in kinds:
        # What cannot be taken back happens to namespaces that end with us.
        LIBC.unshare(0x20000 | 0x4000000 | 0x8000000)
        LIBC.mount(b"none", b"/", None, 0x44000, None)
    for number, (name, needs, lacks, function) in enumerate(ROWS):
        if needs not in kinds:
            continue
        signal.alarm(10)
        try:
            did, why = function(Place(scene, number)) is not False, ""
        except (OSError, TimeoutError) as error:
            did, why = False, str(error)
        signal.alarm(0)
        print(json.dumps({"row": name, "did": did, "why": why, "lacks": lacks}), flush=True)


if sys.argv[1] == "setup":
    setup(sys.argv[2])
else:
    run(json.loads(sys.argv[2]), sys.argv[3].split(","))
