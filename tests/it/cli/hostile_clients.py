"""A command that may reach a few hosts of `*.test`, and tries to reach more. Prints a line for each case that does not hold."""

import os
import socket
import ssl
import struct
import sys

PROXY = ('127.0.0.1', int(os.environ['HTTP_PROXY'].rsplit(':', 1)[1]))
ALERT = bytes([21, 3, 1, 0, 2, 2, 112])
CONNECTIONS = int(sys.argv[1])
PORT = sys.argv[2]


def connect():
    return socket.create_connection(PROXY, 60)


def rest(client):
    parts = []
    try:
        while part := client.recv(1 << 16):
            parts.append(part)
    except ConnectionResetError:
        pass
    return b''.join(parts)


def send(text):
    with connect() as client:
        try:
            client.sendall(text.encode())
            client.shutdown(socket.SHUT_WR)
        except OSError:
            pass
        return rest(client)


def head(client):
    told = b''
    while not told.endswith(b'\r\n\r\n'):
        part = client.recv(1)
        if not part:
            break
        told += part
    return told


def tunnel(target):
    client = connect()
    client.sendall(f'CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n'.encode())
    return client, head(client)


def hello(name):
    """Returns the first message of a real client of TLS."""
    context = ssl.create_default_context()
    context.check_hostname = False
    out = ssl.MemoryBIO()
    client = context.wrap_bio(ssl.MemoryBIO(), out, server_hostname=name)
    try:
        client.do_handshake()
    except ssl.SSLWantReadError:
        pass
    return out.read()


def with_ech(message):
    """Adds an encrypted client hello, whose real name nobody but the server can read."""
    # Of the outer kind, for HKDF-SHA256 and AES-128-GCM, with the number of a key, the key and the ciphertext.
    body = struct.pack('>BHHBH', 0, 1, 1, 7, 32) + os.urandom(32) + struct.pack('>H', 144) + os.urandom(144)
    extension = struct.pack('>HH', 0xfe0d, len(body)) + body
    # A record, a message, the version, a random value, a session, the ciphers and the compressions.
    at = 5 + 4 + 2 + 32
    at += 1 + message[at]
    at += 2 + struct.unpack_from('>H', message, at)[0]
    at += 1 + message[at]
    known = struct.unpack_from('>H', message, at)[0]
    made = message[5 + 4:at] + struct.pack('>H', known + len(extension)) + message[at + 2:] + extension
    made = b'\x01' + len(made).to_bytes(3, 'big') + made
    return message[:3] + struct.pack('>H', len(made)) + made


def refused(case, told, status=b'HTTP/1.1 403 '):
    if not told.startswith(status):
        print(case, 'is not refused:', told[:80])


def refused_tls(case, first):
    client, told = tunnel('files.test:443')
    if not told.startswith(b'HTTP/1.1 200'):
        print(case, 'got no tunnel:', told)
    client.sendall(first)
    told = rest(client)
    if told != ALERT:
        print(case, 'is not refused:', told[:80])


# Many names for one address.
own = ['127.0.0.1', '127.0.0.2', '[::1]', '[::]', '[::ffff:127.0.0.1]', '[64:ff9b::7f00:1]', '0.0.0.0', 'localhost',
       'LOCALHOST.', socket.gethostname()]
for host in own:
    refused(host, tunnel(f'{host}:{PORT}')[1])
for host in ['127.1', '2130706433', '0x7f.1', '017700000001', '127.0.0.1.', 'files.test@127.0.0.1', 'files.test/']:
    refused(host, tunnel(f'{host}:{PORT}')[1], b'HTTP/1.1 400 ')
for host in ['files.test:25', 'files.test.bad.test:443', 'bad.test:443', '8.8.8.8:53']:
    refused(host, tunnel(host)[1])

# Requests that hide another one.
hidden = 'GET http://bad.test/hidden HTTP/1.1\r\nHost: bad.test\r\n\r\n'
post = 'POST http://files.test/post HTTP/1.1\r\nHost: files.test\r\n'
for lines in [
    f'Content-Length: 0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n{hidden}',
    f'Content-Length: 0\r\nContent-Length: {len(hidden)}\r\n\r\n{hidden}',
    f'Transfer-Encoding: chunked, identity\r\n\r\n{hidden}',
    f'Transfer-Encoding: xchunked\r\n\r\n{hidden}',
    f'Connection: content-length\r\nContent-Length: {len(hidden)}\r\n\r\n{hidden}',
    f'Content-Length: 0\r\n\r\n{hidden}',
]:
    if b'bad.test:80 is not' not in (told := send(post + lines)) and told.count(b'200 OK') > 1:
        print('a hidden request is not refused:', lines[:60], told[:80])
url = 'GET http://files.test/ HTTP/1.1\r\n'
for lines in ['Host: bad.test\r\n\r\n', 'Host: files.test\r\nHost: bad.test\r\n\r\n', 'Host: files.test:81\r\n\r\n']:
    refused('another Host', send(url + lines))
inside, told = tunnel('files.test:80')
inside.sendall(b'GET / HTTP/1.1\r\nHost: bad.test\r\nConnection: close\r\n\r\n')
refused('another Host in a CONNECT', rest(inside))

# TLS that names another host, no host, or hides its name; and no TLS.
for name in ['bad.test', 'sub.files.test', None]:
    refused_tls(f'the name {name}', hello(name))
    refused_tls(f'the outer name {name}', with_ech(hello(name)))
for first in [b'GET / HTTP/1.1\r\nHost: files.test\r\n\r\n', b'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', b'SSH-2.0-x\r\n', b'\x80\x2e\x01\x03\x01']:
    refused_tls(first, first + bytes(100))
for first in [hello('files.test'), with_ech(hello('FILES.test'))]:
    client, told = tunnel('files.test:443')
    client.sendall(first)
    client.shutdown(socket.SHUT_WR)
    if (told := rest(client)) != b'rest':
        print('TLS with the right name is refused:', told[:80])

# HTTP/2 without TLS.
refused('HTTP/2', send('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'), b'')
inside, told = tunnel('files.test:80')
inside.sendall(b'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n')
inside.shutdown(socket.SHUT_WR)
if b' 200 ' in (told := rest(inside)):
    print('HTTP/2 in a CONNECT is served:', told[:80])
told = send(url + 'Host: files.test\r\nConnection: upgrade, http2-settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AA\r\n\r\n')
if not told.startswith(b'HTTP/1.1 200 '):
    print('an upgrade changes the answer:', told[:80])

# Ends that are half closed.
client, told = tunnel('half.test:7')
client.sendall(b'all')
client.shutdown(socket.SHUT_WR)
if (told := rest(client)) != b'rest':
    print('the end of one direction is that of both:', told[:80])

# Headers without an end.
with connect() as client:
    sent = 0
    try:
        client.sendall(b'GET http://files.test/ HTTP/1.1\r\nX: ')
        while sent < 64 << 20:
            sent += client.send(b'a' * 4096)
    except OSError:
        pass
    if sent >= 64 << 20:
        print('a header without an end is read for ever')
many = ''.join(f'X-{number}: 1\r\n' for number in range(1000))
refused('1,000 headers', send(f'{url}Host: files.test\r\n{many}\r\n'), b'HTTP/1.1 431 ')

# A reader that does not read stops its server.
slow, told = tunnel('flood.test:7')
while not send('GET http://files.test/stopped HTTP/1.1\r\nHost: files.test\r\n\r\n').endswith(b'yes'):
    pass
slow.close()

# Connections that say nothing fill the queue; later ones are served when they are gone.
silent = [connect() for _ in range(150)]
for client in silent:
    client.close()
for _ in range(CONNECTIONS):
    connect().close()
told = send(url + 'Host: files.test\r\n\r\n')
if not told.startswith(b'HTTP/1.1 200 '):
    print('nothing is served any more:', told[:80])

# The network of the machine is not to be seen.
for name in ['tcp', 'tcp6', 'udp', 'unix', 'route', 'arp']:
    for place in ['self', 'thread-self', '1']:
        try:
            with open(f'/proc/{place}/net/{name}') as file:
                lines = file.read().splitlines()[1:]
        except OSError:
            continue
        ports = [line for line in lines if f':{int(PORT):04X} ' in line]
        if ports or name in ('unix', 'route', 'arp') and lines:
            print(f'/proc/{place}/net/{name} shows', lines)
print('done')
