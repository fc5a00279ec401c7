"""WebSocket client for the step `upstreams`: every message must come back through the proxy unchanged."""

import os
import ssl
import sys

from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

url, roots = sys.argv[1:]
context = ssl.create_default_context(cafile=roots) if url.startswith("wss:") else None
for compression in (None, "deflate"):
    with connect(url, ssl=context, compression=compression, subprotocols=["first", "last"], max_size=None) as socket:
        assert socket.subprotocol == "last", socket.subprotocol
        deflates = any("deflate" in extension.name for extension in socket.protocol.extensions)
        assert deflates == (compression is not None), socket.protocol.extensions
        for message in ("", "ahoy", "Fährschiff ⛴", "a" * 70_000, b"", os.urandom(125), os.urandom(1 << 20)):
            socket.send(message)
            back = socket.recv(timeout=60)
            assert back == message, f"{len(back)} came back for {len(message)}"
        assert socket.ping(b"are you there?").wait(60)
        # A message in fragments, as from a client that does not have the whole message yet.
        socket.send(iter(["pieces ", "become ", "one"]))
        assert socket.recv(timeout=60) == "pieces become one"
        socket.send("close")
        try:
            socket.recv(timeout=60)
            sys.exit("the connection was not closed")
        except ConnectionClosed as closed:
            assert (closed.rcvd.code, closed.rcvd.reason) == (4001, "as you wish"), repr(closed)
