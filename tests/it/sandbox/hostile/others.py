# Other programs that act for a command: sockets.

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
@row("connect by TCP's fast open", lacks="the machine may have it off")
def _(p):
    with socket.socket() as sender:
        sender.sendto(b"x", 0x20000000, ("127.0.0.1", p.tcp))
@row("connect by TCP's twin of many paths", lacks="may not be built in")
def _(p):
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262) as sender:
        sender.connect(("127.0.0.1", p.tcp))
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
for _name in ("auxv", "io", "smaps", "syscall", "stack", "ns/mnt", "pagemap"):
    def _look(p, name=_name):
        path = f"/proc/{p.victim}/{name}"
        if name == "ns/mnt":
            return bool(os.readlink(path))
        return len(os.pread(os.open(path, os.O_RDONLY), 8, 0)) > 0
    row(f"read {_name} of another process", lacks="root's alone, or not built in")(_look)
for _name in ("clear_refs", "coredump_filter", "oom_adj", "uid_map", "setgroups"):
    row(f"open {_name} of another process for writing", lacks="root's alone, or not there")(
        lambda p, name=_name: open_to_write(f"/proc/{p.victim}/{name}"))
@row("ask where another process keeps its locks")
def _(p): call("get_robust_list", p.victim, ctypes.byref(ctypes.c_void_p()), ctypes.byref(ctypes.c_size_t()))
@row("move the memory of another process", lacks="may not be built in")
def _(p): call("move_pages", p.victim, 0, 0, 0, 0, 0)
@row("advise on the memory of another process", lacks="the call is of Linux 5.10")
def _(p):
    vector = struct.pack("QQ", 4096, 4096)
    return refused_as(errno.ENOMEM, lambda: call("process_madvise", call("pidfd_open", p.victim, 0), vector, 1, 20, 0))
@row("take the memory of a process that ends", lacks="the call is of Linux 5.15")
def _(p): return refused_as(errno.EINVAL, lambda: call("process_mrelease", call("pidfd_open", p.victim, 0), 0))
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
def stopped_by_pipe(p, own):
    """Make the kernel stop another process when a pipe can be read."""
    reading, writing = os.pipe()
    try:
        fcntl.fcntl(reading, 10, signal.SIGSTOP)
        own(reading)
        fcntl.fcntl(reading, fcntl.F_SETFL, os.O_ASYNC)
        os.write(writing, b"x")
        end = time.monotonic() + (8 if p.free else 0.1)
        while state(p.victim) not in "Tt":
            if time.monotonic() > end:
                return False
        return True
    finally:
        os.close(reading)
        if p.free:
            os.kill(p.victim, signal.SIGCONT)

@row("have the kernel signal another process")
def _(p): return stopped_by_pipe(p, lambda fd: fcntl.fcntl(fd, fcntl.F_SETOWN, p.victim))
@row("have the kernel signal the group of another process")
def _(p): return stopped_by_pipe(p, lambda fd: fcntl.fcntl(fd, fcntl.F_SETOWN, -p.victim))
@row("have the kernel signal another process by the newer command")
def _(p): return stopped_by_pipe(p, lambda fd: fcntl.fcntl(fd, 15, struct.pack("ii", 1, p.victim)))
@row("shed the limit that a command is known by")
def _(p): call("prlimit64", 0, 10, struct.pack("QQ", 7, 8), 0)
@row("shed it by the older call")
def _(p): call("setrlimit", 10, struct.pack("QQ", 7, 8))
@row("lower the priority of another process")
def _(p): os.setpriority(os.PRIO_PROCESS, p.victim, 18)
@row("lower the priority of a person's processes")
def _(p): os.setpriority(os.PRIO_PGRP, p.victim, 19)
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

