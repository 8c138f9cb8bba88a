"""Take a part of what all programs of a user share: quotas.py NAME. Each program stops long before the others lack it."""

import fcntl
import itertools
import json
import mmap
import os
import resource
import select
import socket
import sys
import time

FILES = resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def fill(epoll, watched, count):
    """Let one descriptor watch so many: each file under many numbers."""
    for file in watched:
        for number in range(100, min(FILES, 1024)):
            if count == 0:
                return
            os.dup2(file, number)
            epoll.register(number)
            count -= 1


def events(count):
    return [os.eventfd(0) for _ in range(count)]


def multiply(count):
    for _ in range(count):
        if os.fork() == 0:
            return
    stay()


def stay():
    time.sleep(300)


def epolls():
    multiply(10)
    held = [select.epoll() for _ in range(110)]
    stay()


def watches_of_one():
    epoll = select.epoll()
    fill(epoll, events(40), 5000)
    stay()


def watches():
    multiply(4)
    watched = events(20)
    held = [select.epoll() for _ in range(20)]
    for epoll in held:
        fill(epoll, watched, 1000)
    stay()


def waiting_epolls():
    """Each descriptor is out of sight as soon as it is full. The oldest ones make room for new ones, until the command is ended."""
    one, other = socket.socketpair()
    watched = events(40)
    for number in itertools.count():
        with select.epoll() as epoll:
            fill(epoll, watched, 15000)
            socket.send_fds(one, [b"x"], [epoll.fileno()])
        if number >= 20:
            os.close(socket.recv_fds(other, 1, 1)[1][0])


def waiting_descriptors():
    sent = events(20)
    pairs = [socket.socketpair() for _ in range(30)]
    for one, _ in pairs:
        socket.send_fds(one, [b"x"], sent)
    stay()


def descriptors():
    multiply(35)
    held = [os.open("/dev/null", os.O_RDONLY) for _ in range(960)]
    stay()


def unreadable():
    """The open files of a program that its user cannot read are hidden, but not the room that it has for them."""
    os.dup2(0, FILES - 1)
    os.execv("./unreadable", ["./unreadable", "300"])


def network_buffers():
    """Fill connections that nobody accepts, and close some of them."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    server = socket.create_server(("127.0.0.1", 0), backlog=4000)
    held, sent = [], 0
    while sent < memory // 20:
        client = socket.create_connection(server.getsockname())
        client.setblocking(False)
        try:
            while True:
                sent += client.send(bytes(1 << 16))
        except BlockingIOError:
            pass
        held.append(client)
        if len(held) % 2:
            held.pop().close()
    stay()


def files_in_memory():
    """Fill files in memory that nobody maps."""
    file = os.memfd_create("x")
    for _ in range(300):
        os.write(file, bytes(1 << 20))
    stay()


def refused(action):
    try:
        action()
    except OSError as error:
        return error.errno
    return 0


def wishes():
    """Ask for several things, and say what was given."""
    one = socket.socketpair()[0]
    default = one.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF)
    one.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x40000
    with open("room", "wb") as file:
        # The C library writes if the kernel reserves nothing.
        os.posix_fallocate(file.fileno(), 0, 100000)
        allocated = os.fstat(file.fileno()).st_size
    print(json.dumps({
        "files": resource.getrlimit(resource.RLIMIT_NOFILE)[1],
        "pipe": refused(lambda: fcntl.fcntl(os.pipe()[1], 1031, 1 << 20)),
        "buffer": one.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF) - default,
        "huge": refused(lambda: mmap.mmap(-1, 2 << 20, flags)),
        "allocated": allocated,
    }))


globals()[sys.argv[1]]()
