"""Ways to read a secret of the workspace, one per row. Prints `GOT name` if a row has the secret, else `no name`."""

import ctypes
import fcntl
import mmap
import os
import shutil
import socket
import subprocess
import sys
import threading

ROWS = []
SECRET = b"hunter2"
HERE = os.getcwd()
TMP = os.environ.get("TMPDIR", "/tmp")
LIBC = ctypes.CDLL(None, use_errno=True)
FILES = [".env", "app/.env.production", "app/deep/er/server.key", "secrets/database.yml", "secrets/more/token",
         ".aws/credentials", "sub/.env", "nested/.env.local", "conf/plain.txt", "keys/k", ".git/credentials",
         "with space/\n/.env", "tracked/.env"]
LINKS = [".env.staging", "credentials/k", "link", "dirlink/database.yml", "many/0/hard", "hard2", "many/1/key"]


def row(name):
    def add(function):
        ROWS.append((name, function))
        return function
    return add


def read(path):
    with open(path, "rb") as file:
        return file.read()


def has(text):
    return SECRET in text


def out(*argv, **more):
    return subprocess.run(argv, capture_output=True, check=False, timeout=60, **more).stdout


for _name in FILES + LINKS:
    row(f"read {_name!r}")(lambda name=_name: read(name))
    row(f"read {_name!r} through /proc/self/root")(lambda name=_name: read(f"/proc/self/root{HERE}/{name}"))
for _name in FILES[:4]:
    row(f"read {_name} through /proc/self/cwd")(lambda name=_name: read(f"/proc/self/cwd/{name}"))
    row(f"read {_name} through /proc/thread-self/root")(lambda name=_name: read(f"/proc/thread-self/root{HERE}/{name}"))
    row(f"read {_name} through dots")(lambda name=_name: read(f"app/../many/../{name}"))
    row(f"read {_name} through a handle on its path")(
        lambda name=_name: read(f"/proc/self/fd/{os.open(name, os.O_PATH)}"))
    row(f"map {_name}")(lambda name=_name: bytes(mmap.mmap(os.open(name, os.O_RDONLY), 0, prot=mmap.PROT_READ)))
    row(f"copy {_name}")(lambda name=_name: read(shutil.copyfile(name, f"{TMP}/copy")))


@row("read through a directory opened without permission to list it")
def _():
    top = os.open("secrets", os.O_PATH | os.O_DIRECTORY)
    return os.read(os.open("database.yml", os.O_RDONLY, dir_fd=top), 99)


@row("read from within the directory")
def _():
    os.chdir("secrets")
    return read("database.yml")


@row("list a secret directory and read what is there")
def _(): return b"".join(read(f"secrets/{name}") for name in os.listdir("secrets") if "." in name)


@row("search the whole tree")
def _(): return out("grep", "-rha", "KEY", ".")


@row("find and print")
def _(): return out("find", ".", "-type", "f", "-name", "*env*", "-exec", "cat", "{}", "+")


@row("pack the tree")
def _(): return out("tar", "cf", "-", ".")


@row("read all at once")
def _(): return out("bash", "-c", "cat .* * 2>/dev/null")


@row("read what a shell opens")
def _(): return out("bash", "-c", "echo \"$(<.env)\"")


@row("run it as a script")
def _(): return out("bash", "-c", ". ./.env; echo $KEY")


@row("show the difference to nothing")
def _(): return out("diff", "/dev/null", ".env")


@row("show the difference by git without an index")
def _(): return out("git", "diff", "--no-index", "/dev/null", ".env")


@row("hash it into the repository and print it")
def _():
    name = out("git", "hash-object", "-w", ".env").decode().strip()
    return out("git", "cat-file", "blob", name) if name else b""


@row("hard link into TMPDIR")
def _():
    os.link(".env", f"{TMP}/linked")
    return read(f"{TMP}/linked")


@row("hard link beside it")
def _():
    os.link(".env", "beside")
    try:
        return read("beside")
    finally:
        os.unlink("beside")


@row("hard link through a handle")
def _():
    os.link(f"/proc/self/fd/{os.open('.env', os.O_PATH)}", "beside2", follow_symlinks=True)
    try:
        return read("beside2")
    finally:
        os.unlink("beside2")


@row("symbolic link in TMPDIR")
def _():
    os.symlink(f"{HERE}/.env", f"{TMP}/symlink")
    return read(f"{TMP}/symlink")


def moved(old, new, path):
    os.rename(old, new)
    try:
        return read(path)
    finally:
        os.rename(new, old)


@row("rename it")
def _(): return moved(".env", "x", "x")


@row("rename its directory")
def _(): return moved("app", "app2", "app2/.env.production")


@row("rename a secret directory")
def _(): return moved("secrets", "s2", "s2/database.yml")


@row("rename the directory above and put another in its place")
def _():
    os.rename("app", "app3")
    try:
        os.mkdir("app")
        os.rename("app3/deep", "app/deep")
        try:
            return read("app/deep/er/server.key")
        finally:
            os.rename("app/deep", "app3/deep")
    finally:
        os.rmdir("app")
        os.rename("app3", "app")


@row("exchange it with another file")
def _():
    done = LIBC.renameat2(-100, b".env", -100, b"one.txt", 2)
    try:
        return read("one.txt")
    finally:
        if done == 0:
            LIBC.renameat2(-100, b".env", -100, b"one.txt", 2)


@row("read while another thread renames its directory")
def _():
    seen, stop = [], threading.Event()

    def rename():
        while not stop.is_set():
            try:
                os.rename("app", "app4")
                os.rename("app4", "app")
            except OSError:
                return
    thread = threading.Thread(target=rename)
    thread.start()
    for number in range(2000):
        try:
            seen.append(read(("app", "app4")[number % 2] + "/.env.production"))
        except OSError:
            pass
    stop.set()
    thread.join()
    return b"".join(seen)


@row("change its mode first")
def _():
    os.chmod(".env", 0o644)
    return read(".env")


@row("change the mode of its directory first")
def _():
    os.chmod("secrets", 0o755)
    return read("secrets/database.yml")


@row("open it to write and read")
def _(): return os.read(os.open(".env", os.O_RDWR), 99)


@row("open it with access mode 3 and read")
def _(): return os.read(os.open(".env", 3), 99) if os.open(".env", 3) else b""


@row("truncate nothing and read")
def _():
    os.truncate(".env", os.stat(".env").st_size)
    return read(".env")


@row("unmount and read")
def _():
    LIBC.umount2(f"{HERE}/.env".encode(), 2)
    LIBC.umount2(HERE.encode(), 2)
    return read(".env")


@row("mount the directory again and read")
def _():
    os.makedirs(f"{TMP}/again", exist_ok=True)
    LIBC.mount(HERE.encode(), f"{TMP}/again".encode(), None, 4096, None)
    try:
        return read(f"{TMP}/again/.env") if os.path.exists(f"{TMP}/again/.env") else read(".env")
    finally:
        LIBC.umount2(f"{TMP}/again".encode(), 2)


@row("clone the tree of mounts and read")
def _():
    tree = LIBC.syscall(428, -100, HERE.encode(), 1)
    return os.read(os.open(".env", os.O_RDONLY, dir_fd=tree), 99) if tree >= 0 else read(".env")


@row("leave the mounts for another namespace")
def _():
    LIBC.unshare(0x10000000 | 0x20000)
    return read(".env")


@row("read through the root of the parent")
def _(): return read(f"/proc/{os.getppid()}/root{HERE}/.env")


@row("read through the root of the first process")
def _(): return read(f"/proc/1/root{HERE}/.env")


@row("receive a descriptor of it")
def _():
    one, two = socket.socketpair()
    socket.send_fds(one, [b"x"], [os.open(".env", os.O_RDONLY)])
    return os.read(socket.recv_fds(two, 1, 1)[1][0], 99)


@row("send it by the kernel")
def _():
    reader, writer = os.pipe()
    os.sendfile(writer, os.open(".env", os.O_RDONLY), 0, 99)
    return os.read(reader, 99)


@row("splice it")
def _():
    reader, writer = os.pipe()
    os.splice(os.open(".env", os.O_RDONLY), writer, 99)
    return os.read(reader, 99)


@row("copy a range of it")
def _():
    there = os.open(f"{TMP}/range", os.O_RDWR | os.O_CREAT)
    os.copy_file_range(os.open(".env", os.O_RDONLY), there, 99)
    return os.pread(there, 99, 0)


@row("share its blocks or read")
def _():
    there = os.open(f"{TMP}/clone", os.O_RDWR | os.O_CREAT)
    source = os.open(".env", os.O_RDONLY)
    try:
        fcntl.ioctl(there, 0x40049409, source)
    except OSError:
        return os.read(source, 99)
    return os.pread(there, 99, 0)


@row("read it in another program that is root in a namespace")
def _(): return out("unshare", "-rm", "cat", ".env") or read(".env")


for _number, (_name, _function) in enumerate(ROWS):
    os.chdir(HERE)
    for _left in ("copy", "linked", "symlink", "range", "clone"):
        if os.path.lexists(f"{TMP}/{_left}"):
            os.unlink(f"{TMP}/{_left}")
    _reader, _writer = os.pipe()
    _child = os.fork()
    if _child == 0:
        try:
            _got = has(_function() or b"")
        except (OSError, ValueError, TypeError, subprocess.SubprocessError) as _error:
            print(f"{_name}: {_error}", file=sys.stderr)
            _got = False
        os.write(_writer, b"GOT" if _got else b"no")
        os._exit(0)
    os.close(_writer)
    os.waitpid(_child, 0)
    print(os.read(_reader, 9).decode() or "no", _name.replace("\n", " "), flush=True)
    os.close(_reader)
