"""Lists moorings over SCGI, using only the standard library of Python.

Usage: python3 app.py PORT. Listens on this port of 127.0.0.1, or on any free port if PORT is 0, and prints the port.
"""

import html
import socketserver
import sys

MOORINGS = {"heron": "north pier, two boats", "teal": "south pier, free"}


class Scgi(socketserver.StreamRequestHandler):
    def handle(self):
        length = b""
        while (byte := self.rfile.read(1)) != b":":
            if not byte:
                return
            length += byte
        parts = self.rfile.read(int(length)).decode("utf-8", "replace").split("\0")
        variables = dict(zip(parts[::2], parts[1::2]))
        self.rfile.read(1)
        status, text = self.answer(variables)
        content = text.encode()
        head = f"Status: {status}\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {len(content)}\r\n\r\n"
        self.wfile.write(head.encode() + content)

    def answer(self, variables):
        base, name = variables["SCRIPT_NAME"], variables["PATH_INFO"].strip("/")
        if not name:
            links = (f'<li><a href="{base}/{mooring}">{mooring}</a>' for mooring in MOORINGS)
            return "200 OK", "<h1>Moorings</h1><ul>" + "".join(links) + "</ul>"
        if name in MOORINGS:
            return "200 OK", f"<h1>{name}</h1><p>{MOORINGS[name]}"
        return "404 Not Found", f"<h1>No mooring {html.escape(name)}</h1>"


class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True


if __name__ == "__main__":
    with Server(("127.0.0.1", int(sys.argv[1])), Scgi) as server:
        print(f"listening on 127.0.0.1 {server.server_address[1]}", flush=True)
        server.serve_forever()
