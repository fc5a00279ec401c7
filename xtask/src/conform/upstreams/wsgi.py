"""WSGI application for gunicorn: the responses that every upstream of the step `upstreams` has.

gunicorn runs one process, whose threads share `released`.
"""

import hashlib
import threading

released = threading.Event()
PIECES = 1000


def app(environ, start_response):
    path = environ["PATH_INFO"]

    def respond(content, kind="text/plain", status="200 OK"):
        start_response(status, [("Content-Type", kind), ("Content-Length", str(len(content)))])
        return [content]

    def stream(pieces, kind):
        start_response("200 OK", [("Content-Type", kind)])
        return pieces

    if path == "/hello":
        return respond(b"hello")
    if path == "/digest":
        digest, length = hashlib.sha256(), 0
        while piece := environ["wsgi.input"].read(65536):
            digest.update(piece)
            length += len(piece)
        return respond(f"{length} {digest.hexdigest()}".encode())
    if path == "/pieces":
        return stream((b"%04d" % number * 250 for number in range(PIECES)), "application/octet-stream")
    if path == "/go":
        released.set()
        return respond(b"gone")
    if path == "/events":
        return stream(events(), "text/event-stream")
    return respond(b"nothing here", status="404 Not Found")


def events():
    """Sends the second event after a client that has read the first has requested /go."""
    released.clear()
    yield b"data: first\n\n"
    released.wait(60)
    yield b"data: second\n\n"
