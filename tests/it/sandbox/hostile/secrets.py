# Credentials.

for _name in (".ssh/id", ".aws/credentials", ".gnupg/key", ".kube/config", ".netrc", ".docker/config.json",
              ".git-credentials", ".config/git/credentials", ".cargo/credentials.toml", ".npmrc", ".pypirc",
              ".bash_history", ".python_history", ".mozilla/profile", ".config/gh/hosts.yml", ".pgpass",
              ".password-store/key", ".local/share/keyrings/login", ".local/state/co/chats", ".config/co/key",
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
@row("read a key through an inherited directory")
def _(p):
    descriptor = os.open("../.ssh/id", os.O_RDONLY, dir_fd=p.inherited_dir)
    return b"hunter2" in os.read(descriptor, 100)
@row("read a key by entering an inherited directory")
def _(p):
    os.fchdir(p.inherited_dir)
    try:
        return secret("../.ssh/id")
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
for _name in ("mem", "kmem", "port", "vcs1", "vcsa1", "fb0", "input/event0", "rtc0", "fuse", "kvm", "uinput", "net/tun"):
    row(f"open /dev/{_name}", needs="root", lacks="a machine may be without it, or lock it")(
        lambda p, name=_name: os.close(os.open("/dev/" + name, os.O_RDONLY)))
for _name in ("kcore", "kmsg"):
    row(f"open /proc/{_name}", needs="root", lacks="a container has none")(
        lambda p, name=_name: os.close(os.open("/proc/" + name, os.O_RDONLY | os.O_NONBLOCK)))
@row("read the disk", needs="root", lacks="a container has none")
def _(p): os.open("/dev/" + p.disk, os.O_RDONLY)

# Locks on files that other programs use.

LOCK = struct.pack("hhqqi", fcntl.F_RDLCK, 0, 0, 0, 0)

for _name, _command in (("F_SETLK", fcntl.F_SETLK), ("F_SETLKW", fcntl.F_SETLKW), ("F_OFD_SETLK", 37),
                        ("F_OFD_SETLKW", 38)):
    row(f"lock a file that may be read by {_name}", work=True)(
        lambda p, command=_command: fcntl.fcntl(os.open(p.file, os.O_RDONLY), command, LOCK) and None)
for _name, _how in (("shared", fcntl.LOCK_SH), ("alone", fcntl.LOCK_EX | fcntl.LOCK_NB)):
    row(f"lock a file that may be read by flock, {_name}", work=True)(
        lambda p, how=_how: fcntl.flock(os.open(p.file, os.O_RDONLY), how))
@row("hold up whoever opens a file")
def _(p): fcntl.fcntl(os.open(p.file, os.O_RDONLY), fcntl.F_SETLEASE, fcntl.F_RDLCK)

