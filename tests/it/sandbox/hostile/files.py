# Writes of every kind.

@row("create a file in the workspace", work=True)
def _(p): put(p.new)
@row("overwrite a file in the workspace", work=True)
def _(p): put(p.file, os.O_WRONLY)
@row("append to a file", work=True)
def _(p): put(p.file, os.O_WRONLY | os.O_APPEND)
@row("open for reading and writing", work=True)
def _(p): put(p.file, os.O_RDWR)
@row("truncate by path", work=True)
def _(p): os.truncate(p.file, 0)
@row("empty while opening for reading", work=True)
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
@row("a nameless file in the workspace", work=True)
def _(p): os.open(p.dir, os.O_TMPFILE | os.O_RDWR, 0o600)
@row("write through a shared mapping", work=True)
def _(p):
    with open(p.file, "r+b") as file:
        mmap.mmap(file.fileno(), 0, mmap.MAP_SHARED)[0:1] = b"x"
@row("allocate room in a file", work=True)
def _(p): os.posix_fallocate(os.open(p.file, os.O_WRONLY), 0, 9000)
@row("write by openat2")
def _(p): openat2(p.file, os.O_WRONLY)
@row("write through /proc/self/cwd", work=True)
def _(p): put("/proc/self/cwd/" + os.path.relpath(p.file), os.O_WRONLY)
@row("write through /proc/self/root", work=True)
def _(p): put("/proc/self/root" + p.file, os.O_WRONLY)
@row("write through a link in TMPDIR", work=True)
def _(p):
    link = os.path.join(p.tmp, "link-out")
    os.symlink(p.file, link)
    put(link, os.O_WRONLY)
@row("reopen a descriptor for writing", work=True)
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
@row("remove a file", work=True)
def _(p): os.unlink(p.file)
@row("rename a file", work=True)
def _(p): os.rename(p.file, p.new)
@row("replace a file by another", work=True)
def _(p): os.replace(p.other, p.file)
@row("exchange two files", work=True)
def _(p): call("renameat2", AT, p.file.encode(), AT, p.other.encode(), 2)
@row("rename a directory", work=True)
def _(p): os.rename(p.dir, p.new)
@row("move a file out of TMPDIR into the workspace", work=True)
def _(p):
    put(p.tmp + "/moved")
    os.rename(p.tmp + "/moved", p.new)
@row("make a directory", work=True)
def _(p): os.mkdir(p.new)
@row("remove a directory", work=True)
def _(p): os.rmdir(p.dir)
@row("make a symbolic link", work=True)
def _(p): os.symlink("x", p.new)
@row("make a hard link in the workspace", work=True)
def _(p): os.link(p.file, p.new)
@row("hard link a file of the workspace into TMPDIR and write there", work=True)
def _(p):
    os.link(p.file, p.tmp + "/linked")
    put(p.tmp + "/linked", os.O_WRONLY)
@row("make a named pipe", work=True)
def _(p): os.mkfifo(p.new)
@row("make a socket node", work=True)
def _(p): os.mknod(p.new, 0o140600)
@row("leave a core in the workspace", lacks=NO_CORES, work=True)
def _(p):
    before = set(os.listdir(p.ws))
    def crash():
        resource.setrlimit(resource.RLIMIT_CORE, (resource.RLIM_INFINITY,) * 2)
        os.chdir(p.ws)
        ctypes.string_at(8)
    in_child(crash)
    return set(os.listdir(p.ws)) != before
@row("hint how a file is written", lacks="the owner's alone, and of Linux 4.13")
def _(p): fcntl.fcntl(os.open(p.file, os.O_RDONLY), 1036, struct.pack("Q", 2))
@row("open co-nvim, which confines, for writing")
def _(p): open_to_write(os.path.join(os.path.dirname(p.ws), "co-nvim"))
@row("make a file in an inherited directory")
def _(p): os.close(os.open("new", os.O_CREAT | os.O_WRONLY, dir_fd=p.inherited_dir))
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
# Actions that the kernel starts on request. No file is written.
for _name in ("/proc/sys/kernel/core_pattern", "/proc/sys/kernel/modprobe", "/proc/sys/fs/binfmt_misc/register",
              "/proc/sysrq-trigger", "/sys/kernel/uevent_helper", "/sys/power/state", "/sys/fs/cgroup/release_agent",
              "/sys/fs/cgroup/cgroup.kill", "/sys/kernel/mm/transparent_hugepage/enabled"):
    row(f"open {_name} for writing", needs="root", lacks="not there, or read-only in a container")(
        lambda p, name=_name: open_to_write(name))
@row("write to the kernel's log", needs="root")
def _(p): put("/dev/kmsg", os.O_WRONLY, b"")
@row("make a control group", needs="root", lacks="no control groups of version 1, or not this user's")
def _(p):
    os.mkdir(f"/sys/fs/cgroup/pids/{p.token}")
    os.rmdir(f"/sys/fs/cgroup/pids/{p.token}")

# Modes, owners, times, attributes.

@row("change a mode by path", work=True)
def _(p): os.chmod(p.file, 0o777)
@row("change the mode of an open file", work=True)
def _(p): os.fchmod(os.open(p.file, os.O_RDONLY), 0o777)
@row("change a mode by fchmodat2", lacks="the call is of Linux 6.6", work=True)
def _(p): call("fchmodat2", AT, p.file.encode(), 0o777, 0)
@row("change a mode in the home directory")
def _(p): os.chmod(p.home + "/.ssh/id", 0o644)
def setuid(path):
    return os.stat(path).st_mode & 0o4000 != 0

@row("make a setuid program by a mode")
def _(p):
    put(p.tmp + "/mode")
    os.chmod(p.tmp + "/mode", 0o4755)
    return setuid(p.tmp + "/mode")
@row("make a setuid program in the workspace")
def _(p):
    os.chmod(p.file, 0o4755)
    return setuid(p.file)
@row("make a setuid program by the mode of an open file")
def _(p):
    descriptor = os.open(p.tmp + "/open", os.O_CREAT | os.O_RDWR)
    os.fchmod(descriptor, 0o6755)
    return setuid(p.tmp + "/open")
@row("make a setuid program by fchmodat2", lacks="the call is of Linux 6.6")
def _(p):
    put(p.tmp + "/2")
    call("fchmodat2", AT, (p.tmp + "/2").encode(), 0o4755, 0)
@row("make a setuid program while making the file")
def _(p):
    os.close(os.open(p.tmp + "/made", os.O_CREAT | os.O_WRONLY, 0o4755))
    return setuid(p.tmp + "/made")
@row("make a nameless setuid program")
def _(p): return os.fstat(os.open(p.tmp, os.O_TMPFILE | os.O_RDWR, 0o4755)).st_mode & 0o4000 != 0
@row("make a setuid program by the oldest call", lacks="" if X86 else "the call is of x86")
def _(p):
    call("open", (p.tmp + "/old").encode(), os.O_CREAT | os.O_WRONLY, 0o4755)
    return setuid(p.tmp + "/old")
@row("make a setuid program by creat", lacks="" if X86 else "the call is of x86")
def _(p):
    call("creat", (p.tmp + "/creat").encode(), 0o4755)
    return setuid(p.tmp + "/creat")
@row("make a setuid program as a node")
def _(p):
    os.mknod(p.tmp + "/node", 0o104755)
    return setuid(p.tmp + "/node")
@row("change an owner by path", work=True)
def _(p): os.chown(p.file, os.getuid(), os.getgid())
@row("give a file to somebody else", needs="root")
def _(p): os.chown(p.file, 12345, 12345)
@row("change the owner of a link", work=True)
def _(p): os.lchown(p.file, os.getuid(), os.getgid())
@row("change the owner of an open file", work=True)
def _(p): os.fchown(os.open(p.file, os.O_RDONLY), os.getuid(), os.getgid())
@row("set a time by path", work=True)
def _(p): os.utime(p.file, (1, 1))
@row("set a time to now", work=True)
def _(p): os.utime(p.file)
@row("set the time of an open file", work=True)
def _(p): os.utime(os.open(p.file, os.O_RDONLY), (1, 1))
@row("set a time by the oldest call", lacks="" if X86 else "the call is of x86", work=True)
def _(p): call("utime", p.file.encode(), 0)
@row("set a time by utimes", lacks="" if X86 else "the call is of x86", work=True)
def _(p): call("utimes", p.file.encode(), 0)
@row("set an extended attribute", work=True)
def _(p): os.setxattr(p.file, "user.x", b"x")
@row("set an extended attribute of an open file", work=True)
def _(p): os.setxattr(os.open(p.file, os.O_RDONLY), "user.x", b"x")
@row("remove an extended attribute", work=True)
def _(p): os.removexattr(p.other, "user.there")
@row("set an extended attribute by setxattrat", lacks="the call is of Linux 6.13", work=True)
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
@row("set a flag of an inode with bits above the request")
def _(p):
    descriptor = os.open(p.file, os.O_RDONLY)
    flags = ctypes.create_string_buffer(8)
    call("ioctl", descriptor, 0x80086601, flags)
    flags[0] = bytes([flags.raw[0] | 0x40])
    call("ioctl", descriptor, 0x40086602 | 1 << 32, flags)
@row("make a file immutable", needs="root")
def _(p):
    descriptor = os.open(p.file, os.O_RDONLY)
    before = add_flag(descriptor, 0x10)
    fcntl.ioctl(descriptor, 0x40086602, before)
@row("change a mode by the gate of 32-bit programs", lacks="kernels may be without 32-bit programs")
def _(p):
    if not X86:
        return False
    # mov eax, 15; mov ebx, PATH; mov ecx, MODE; int 0x80; mov eax, eax; ret
    page = mmap.mmap(-1, 8192, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x40, 7)
    start = ctypes.addressof(ctypes.c_char.from_buffer(page))
    path = p.file.encode() + b"\0"
    page[4096:4096 + len(path)] = path
    code = (b"\x53\xb8\x0f\0\0\0\xbb" + struct.pack("I", start + 4096) + b"\xb9" + struct.pack("I", 0o755)
            + b"\xcd\x80\x5b\xc3")
    page[:len(code)] = code
    in_child(lambda: ctypes.CFUNCTYPE(ctypes.c_int)(start)())
    return os.stat(p.file).st_mode & 0o777 == 0o755
@row("change a mode by the x32 call", lacks="kernels are seldom built with x32")
def _(p): call("chmod", p.file.encode(), 0o777, twin=X32)

