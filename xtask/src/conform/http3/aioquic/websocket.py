"""WebSocket over HTTP/3 (RFC 9220): messages to the echo of `asgi.py` in the DATA frames of an extended CONNECT."""

from websockets.frames import Frame, Opcode
from websockets.streams import StreamReader

# Setting by which a server permits extended CONNECT (RFC 9220, section 5).
ENABLE_CONNECT_PROTOCOL = 0x8
# Payload of the largest message in bytes: more than all receive windows.
LARGE = 3_000_000


async def websocket(target):
    """WebSocket in a stream: messages of all kinds, a ping, and the closing handshake."""
    async with target.connection() as client:
        settings = await client.settings()
        if settings.get(ENABLE_CONNECT_PROTOCOL) != 1:
            raise AssertionError(f"the server does not permit extended CONNECT: {settings}")
        tunnel = Tunnel(client)
        await tunnel.open("/app/echo")
        large = bytes(range(256)) * (LARGE // 256)
        for opcode, payload in [
            (Opcode.TEXT, "Fünf Möwen".encode()),
            (Opcode.BINARY, b""),
            (Opcode.BINARY, large),
        ]:
            tunnel.send(Frame(opcode, payload))
            await tunnel.expect(opcode, payload)
        # The upstream answers the ping, because the tunnel passes control frames on.
        tunnel.send(Frame(Opcode.PING, b"ahoy"))
        await tunnel.expect(Opcode.PONG, b"ahoy")
        tunnel.send(Frame(Opcode.TEXT, b"close"))
        await tunnel.expect(Opcode.CLOSE, (4001).to_bytes(2) + b"as you wish")
        tunnel.send(Frame(Opcode.CLOSE, (4001).to_bytes(2)))
        await tunnel.end()


class Tunnel:
    """A WebSocket connection in one stream."""

    def __init__(self, client):
        self._client = client
        self._response = None
        self._reader = StreamReader()
        self._read = 0

    async def open(self, path):
        fields = [("sec-websocket-version", "13"), ("origin", "https://localhost")]
        extra = [(":protocol", "websocket")]
        self._response = self._client.request(path, method="CONNECT", extra=extra, fields=fields, is_open=True)
        await self._response.until(lambda: self._response.fields)
        if self._response.status != 200:
            raise AssertionError(f"the WebSocket was refused: {self._response.fields}")

    def send(self, frame):
        # Clients mask their frames (RFC 6455, section 5.1).
        self._client.http.send_data(self._response.stream, frame.serialize(mask=True), end_stream=False)
        self._client.transmit()

    async def expect(self, opcode, payload):
        """Reads a message, which may have more than one frame, and compares it."""
        first = frame = await self._frame()
        found = bytes(frame.data)
        while not frame.fin:
            frame = await self._frame()
            found += frame.data
        if (first.opcode, found) != (opcode, payload):
            raise AssertionError(f"{first.opcode} {found[:50]} of {len(found)} bytes, not {opcode} {payload[:50]}")

    async def _frame(self):
        parser = Frame.parse(self._reader.read_exact, mask=False)
        while True:
            try:
                next(parser)
            except StopIteration as complete:
                return complete.value
            await self._response.until(lambda: len(self._response.body) > self._read)
            self._reader.feed_data(bytes(self._response.body[self._read :]))
            self._read = len(self._response.body)

    async def end(self):
        """Ends the stream and waits until the server ends it too."""
        self._client.http.send_data(self._response.stream, b"", end_stream=True)
        self._client.transmit()
        await self._response.whole()
