"""Echoes WebSocket messages (RFC 6455), using only the standard library of Python.

Usage: python3 echo.py PORT. Listens on this port of 127.0.0.1, or on any free port if PORT is 0, and prints the port.
"""

import base64
import hashlib
import socketserver
import struct
import sys

GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
CLOSE, PING, PONG = 8, 9, 10


class Echo(socketserver.StreamRequestHandler):
    def handle(self):
        self.rfile.readline()
        fields = {}
        while line := self.rfile.readline().strip():
            name, _, value = line.partition(b":")
            fields[name.strip().lower()] = value.strip()
        key = fields.get(b"sec-websocket-key")
        if key is None:
            self.wfile.write(b"HTTP/1.1 426 Upgrade Required\r\nUpgrade: websocket\r\nConnection: upgrade, close\r\n"
                             b"Content-Length: 0\r\n\r\n")
            return
        accept = base64.b64encode(hashlib.sha1(key + GUID).digest())
        self.wfile.write(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: upgrade\r\n"
                         b"Sec-WebSocket-Accept: " + accept + b"\r\n\r\n")
        while frame := self.read():
            first, content = frame
            kind = first & 15
            self.write(first & 0xF0 | PONG if kind == PING else first, content)
            if kind == CLOSE:
                return

    def read(self):
        head = self.rfile.read(2)
        if len(head) < 2:
            return None
        length = head[1] & 127
        if length > 125:
            size, form = (2, "!H") if length == 126 else (8, "!Q")
            length, = struct.unpack(form, self.rfile.read(size))
        mask = self.rfile.read(4)
        content = self.rfile.read(length)
        return head[0], bytes(byte ^ mask[index % 4] for index, byte in enumerate(content))

    def write(self, first, content):
        length = len(content)
        if length < 126:
            head = struct.pack("!BB", first, length)
        elif length < 65536:
            head = struct.pack("!BBH", first, 126, length)
        else:
            head = struct.pack("!BBQ", first, 127, length)
        self.wfile.write(head + content)


class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True


with Server(("127.0.0.1", int(sys.argv[1])), Echo) as server:
    print("listening on", server.server_address[1], flush=True)
    server.serve_forever()
