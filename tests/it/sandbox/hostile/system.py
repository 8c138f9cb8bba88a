# Namespaces, mounts and other views of the system.

@row("a user namespace")
def _(p): return in_child(lambda: call("unshare", 0x10000000))
@row("a user and mount namespace")
def _(p): return in_child(lambda: call("unshare", 0x10020000))
@row("a time namespace", needs="root", lacks="may not be built in")
def _(p): return in_child(lambda: call("unshare", 0x80))
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

@row("type into the terminal with bits above the request", needs="root", lacks="dev.tty.legacy_tiocsti may be off")
def _(p):
    def type_in():
        own_terminal()
        call("ioctl", 0, 0x5412 | 1 << 32, b"x")
    return in_child(type_in)
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
@row("load a module into the kernel", needs="root", lacks="may not be built in, or locked down")
def _(p): return refused_as(errno.ENOEXEC, lambda: call("init_module", bytes(64), 64, b""))
@row("restart the machine, with a number that does not", needs="root", lacks="a container may not")
def _(p): return refused_as(errno.EINVAL, lambda: call("reboot", 1, 2, 3, 0))
@row("run before everything else", needs="root", lacks="a container may not")
def _(p): return in_child(lambda: os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1)))
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

# Parts of the kernel that a program which looks does not need, and quotas that all programs share.

ALLOW_ALL = ctypes.create_string_buffer(struct.pack("HBBI", 6, 0, 0, 0x7FFF0000))
FILTER = struct.pack("HL", 1, ctypes.addressof(ALLOW_ALL))

@row("pass a descriptor to a socket", work=True)
def _(p):
    one, other = socket.socketpair()
    socket.send_fds(one, [b"x"], [0])
    os.close(socket.recv_fds(other, 1, 1)[1][0])
@row("send urgent data", lacks="may not be built in")
def _(p):
    one, _other = socket.socketpair()
    one.send(b"x", socket.MSG_OOB)
@row("attach a filter to a socket", work=True)
def _(p): socket.socketpair()[0].setsockopt(socket.SOL_SOCKET, 26, FILTER)
@row("enlarge the buffer of a socket", work=True)
def _(p): socket.socketpair()[0].setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
@row("a pair of sockets that keep messages apart", work=True)
def _(p): socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
@row("a file in memory", work=True)
def _(p): os.close(call("memfd_create", b"x", 0))
@row("memory that processes share without a file", work=True)
def _(p): mmap.mmap(-1, 4096)
@row("memory of zeros that processes share", work=True)
def _(p): mmap.mmap(os.open("/dev/zero", os.O_RDONLY), 4096, mmap.MAP_SHARED, mmap.PROT_READ)
@row("a list of rules", work=True, lacks="the kernel may be older, or without Landlock")
def _(p): os.close(call("landlock_create_ruleset", struct.pack("Q", 1), 8, 0))
@row("secret memory", lacks="the machine may have it off")
def _(p): os.close(call("memfd_secret", 0))
@row("asynchronous requests", lacks="may not be built in")
def _(p): call("io_setup", 1, ctypes.create_string_buffer(8))
@row("give pages to a pipe")
def _(p):
    text = ctypes.create_string_buffer(b"x")
    call("vmsplice", os.pipe()[1], struct.pack("PL", ctypes.addressof(text), 1), 1, 0)
@row("enlarge a pipe")
def _(p): fcntl.fcntl(os.pipe()[1], 1031, 1 << 20)
@row("have open files apart from those of the process")
def _(p): return in_child(lambda: call("unshare", 0x400))
@row("have open files that nobody can look at")
def _(p):
    def hide():
        LIBC.prctl(4, 0, 0, 0, 0)
        if LIBC.prctl(3, 0, 0, 0, 0) != 0: raise OSError(errno.EPERM, "dumpable")
    return in_child(hide)
@row("huge pages", lacks="the machine may have none")
def _(p): mmap.mmap(-1, 2 << 20, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x40000)
@row("a file in huge pages", lacks="may not be built in")
def _(p): os.close(call("memfd_create", b"x", 4))
@row("take a handle on a file")
def _(p):
    handle = ctypes.create_string_buffer(struct.pack("Ii", 128, 0) + bytes(128))
    call("name_to_handle_at", AT, p.file.encode(), handle, ctypes.byref(ctypes.c_int()), 0)
@row("ask about a mount", lacks="the kernel may be older")
def _(p): return refused_as(errno.EFAULT, lambda: call("statmount", 0, 0, 0, 0))
@row("run with another personality", work=True)
def _(p): return in_child(lambda: call("personality", 0x0040000))
@row("describe segments of memory", lacks="" if X86 else "the call is of x86")
def _(p): call("modify_ldt", 0, ctypes.create_string_buffer(16), 16)
@row("answer the system calls of another process")
def _(p):
    def listen():
        LIBC.prctl(38, 1, 0, 0, 0)
        call("seccomp", 1, 8, FILTER)
    return in_child(listen)
