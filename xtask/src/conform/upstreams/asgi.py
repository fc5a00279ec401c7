"""ASGI application for uvicorn: the responses that every upstream of the step `upstreams` has, fields of
requests, and a WebSocket echo."""

import asyncio
import hashlib

released = asyncio.Event()
PIECES = 1000


async def app(scope, receive, send):
    if scope["type"] == "websocket":
        return await echo(scope, receive, send)
    if scope["type"] != "http":
        return None
    path = scope["path"]

    async def start(kind="text/plain", status=200, length=None):
        fields = [(b"content-type", kind.encode())]
        if length is not None:
            fields.append((b"content-length", str(length).encode()))
        await send({"type": "http.response.start", "status": status, "headers": fields})

    async def body(piece, more=False):
        await send({"type": "http.response.body", "body": piece, "more_body": more})

    if path == "/hello":
        await start(length=5)
        await body(b"hello")
    elif path == "/digest":
        digest, length, more = hashlib.sha256(), 0, True
        while more:
            message = await receive()
            piece, more = message.get("body", b""), message.get("more_body", False)
            digest.update(piece)
            length += len(piece)
        text = f"{length} {digest.hexdigest()}".encode()
        await start(length=len(text))
        await body(text)
    elif path.startswith("/fields/"):
        # A line for each field of the request with this name.
        wanted = path.removeprefix("/fields/").encode()
        lines = b"\n".join(value for name, value in scope["headers"] if name == wanted)
        await start(length=len(lines))
        await body(lines)
    elif path == "/pieces":
        await start("application/octet-stream")
        for number in range(PIECES):
            await body(b"%04d" % number * 250, more=True)
        await body(b"")
    elif path == "/go":
        released.set()
        await start(length=4)
        await body(b"gone")
    elif path == "/events":
        # The second event is sent after a client that has read the first has requested /go.
        released.clear()
        await start("text/event-stream")
        await body(b"data: first\n\n", more=True)
        await asyncio.wait_for(released.wait(), 60)
        await body(b"data: second\n\n")
    else:
        await start(status=404, length=12)
        await body(b"nothing here")


async def echo(scope, receive, send):
    await receive()
    offered = scope["subprotocols"]
    await send({"type": "websocket.accept", "subprotocol": offered[-1] if offered else None})
    while (message := await receive())["type"] == "websocket.receive":
        text, data = message.get("text"), message.get("bytes")
        if text == "close":
            return await send({"type": "websocket.close", "code": 4001, "reason": "as you wish"})
        await send({"type": "websocket.send", "text": text} if text is not None else {"type": "websocket.send", "bytes": data})
