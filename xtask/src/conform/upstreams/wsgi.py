"""What every upstream of this step answers, by WSGI for gunicorn: one process with threads, which share `told`."""

import hashlib
import threading

told = threading.Event()
PIECES = 1000


def app(environ, start_response):
    path = environ["PATH_INFO"]

    def answer(content, kind="text/plain", status="200 OK"):
        start_response(status, [("Content-Type", kind), ("Content-Length", str(len(content)))])
        return [content]

    def stream(pieces, kind):
        start_response("200 OK", [("Content-Type", kind)])
        return pieces

    if path == "/hello":
        return answer(b"hello")
    if path == "/digest":
        digest, length = hashlib.sha256(), 0
        while piece := environ["wsgi.input"].read(65536):
            digest.update(piece)
            length += len(piece)
        return answer(f"{length} {digest.hexdigest()}".encode())
    if path == "/pieces":
        return stream((b"%04d" % number * 250 for number in range(PIECES)), "application/octet-stream")
    if path == "/go":
        told.set()
        return answer(b"gone")
    if path == "/events":
        return stream(events(), "text/event-stream")
    return answer(b"nothing here", status="404 Not Found")


def events():
    """The second event is not there before somebody who has seen the first asked for /go."""
    told.clear()
    yield b"data: first\n\n"
    told.wait(60)
    yield b"data: second\n\n"
