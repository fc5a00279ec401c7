"""HTTP/3 client on top of aioquic: requests whose responses arrive as a whole or piece by piece."""

import asyncio
import hashlib
import socket
from contextlib import asynccontextmanager

from aioquic.asyncio.client import connect
from aioquic.asyncio.protocol import QuicConnectionProtocol
from aioquic.h3.connection import H3_ALPN, H3Connection
from aioquic.h3.events import DataReceived, HeadersReceived
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.events import ConnectionTerminated, HandshakeCompleted, StreamReset

AUTHORITY = "localhost"
# Receive window of the client in bytes. aioquic is slow, so that a larger window would only fill buffers.
WINDOW = 1 << 20


class Response:
    """A response that is being received. Its body is kept, or only its digest if `keeps_body` is false."""

    def __init__(self, stream, keeps_body):
        self.stream = stream
        self.fields = []
        self.trailers = []
        self.interim = []
        self.body = bytearray()
        self.length = 0
        self.digest = hashlib.sha256()
        self.error = None
        self.is_complete = False
        self._keeps_body = keeps_body
        self._changed = asyncio.Event()

    @property
    def status(self):
        return int(self.field(":status") or 0)

    def field(self, name):
        """Returns the value of a field, or None."""
        return dict(self.fields).get(name.encode(), b"").decode() or None

    def receive(self, event):
        if isinstance(event, HeadersReceived):
            status = int(dict(event.headers).get(b":status", b"0"))
            if 100 <= status < 200:
                self.interim.append(event.headers)
            elif self.fields:
                self.trailers = event.headers
            else:
                self.fields = event.headers
        else:
            self.length += len(event.data)
            self.digest.update(event.data)
            if self._keeps_body:
                self.body += event.data
        self.is_complete |= event.stream_ended
        self._changed.set()

    def fail(self, error):
        if not self.is_complete:
            self.error = error
            self._changed.set()

    async def until(self, condition):
        """Waits until the condition holds. Fails if the response ends before that."""
        while not condition():
            if self.error is not None:
                raise ConnectionError(f"stream {self.stream}: {self.error}")
            if self.is_complete:
                raise AssertionError(f"stream {self.stream} has ended: {self.fields} {bytes(self.body[:200])}")
            self._changed.clear()
            await self._changed.wait()

    async def whole(self):
        """Waits for the end of the response."""
        await self.until(lambda: self.is_complete)
        return self


class Http(H3Connection):
    """HTTP/3 with responses to HEAD. They have no body, whatever their Content-Length (RFC 9110, section 8.6), but
    aioquic does not know the method and takes them for incomplete."""

    def __init__(self, quic):
        super().__init__(quic)
        self.head_streams = set()

    def _check_content_length(self, stream):
        if stream.stream_id not in self.head_streams or stream.content_length > 0:
            super()._check_content_length(stream)


class Client(QuicConnectionProtocol):
    """One connection."""

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.http = Http(self._quic)
        self.handshake = None
        self.responses = {}
        self._settings = asyncio.Event()
        self._termination = self._loop.create_future()

    @property
    def quic(self):
        return self._quic

    def quic_event_received(self, event):
        if isinstance(event, HandshakeCompleted):
            self.handshake = event
        elif isinstance(event, ConnectionTerminated):
            self._termination.set_result(event)
            for response in self.responses.values():
                response.fail(f"the connection was closed: {event.error_code:#x} {event.reason_phrase}")
        elif isinstance(event, StreamReset) and event.stream_id in self.responses:
            self.responses[event.stream_id].fail(f"the stream was reset: {event.error_code:#x}")
        for received in self.http.handle_event(event):
            response = self.responses.get(received.stream_id)
            if response is not None and isinstance(received, HeadersReceived | DataReceived):
                response.receive(received)
        if self.http.received_settings is not None:
            self._settings.set()

    async def settings(self):
        """Waits for the server's SETTINGS frame and returns its settings."""
        await self._settings.wait()
        return self.http.received_settings

    async def closed(self):
        """Waits until the connection is closed and returns its last event."""
        return await self._termination

    def request(self, path, method="GET", fields=(), body=None, is_open=False, keeps_body=True, extra=()):
        """Sends a request and returns its response, which has still to arrive. `is_open` leaves the request without
        its end; `extra` are pseudo-header fields."""
        stream = self._quic.get_next_available_stream_id()
        response = self.responses[stream] = Response(stream, keeps_body)
        if method == "HEAD":
            self.http.head_streams.add(stream)
        head = [(":method", method), (":scheme", "https"), (":authority", AUTHORITY), (":path", path), *extra, *fields]
        head = [(name.encode(), value.encode()) for name, value in head]
        self.http.send_headers(stream, head, end_stream=body is None and not is_open)
        if body is not None:
            self.http.send_data(stream, body, end_stream=not is_open)
        self.transmit()
        return response

    async def get(self, path, **options):
        """Returns the whole response to a request."""
        return await self.request(path, **options).whole()

    async def change_address(self):
        """Continues from another port, as a client behind a NAT does whose mapping has expired."""
        endpoint = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
        # The client sends to IPv4 addresses too.
        endpoint.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        endpoint.bind(("::", 0))
        opened, _ = await self._loop.create_datagram_endpoint(lambda: _Receiver(self), sock=endpoint)
        old, self._transport = self._transport, opened
        # Datagrams to the old address are lost.
        old.close()
        self.change_connection_id()


class _Receiver(asyncio.DatagramProtocol):
    """Passes the datagrams of another socket to the connection."""

    def __init__(self, client):
        self._client = client

    def datagram_received(self, data, address):
        self._client.datagram_received(data, address)


class Target:
    """Server to connect to, and the file with the root certificate."""

    def __init__(self, port, roots):
        self.port = port
        self.roots = roots

    def configuration(self, **options):
        configuration = QuicConfiguration(alpn_protocols=H3_ALPN, server_name=AUTHORITY, max_data=4 * WINDOW,
                                          max_stream_data=WINDOW, **options)
        configuration.load_verify_locations(self.roots)
        return configuration

    @asynccontextmanager
    async def connection(self, ticket_handler=None, token_handler=None, **options):
        """Opens a connection, and closes it at the end. `options` are those of the QUIC configuration."""
        configuration = self.configuration(**options)
        opened = connect("127.0.0.1", self.port, configuration=configuration, create_protocol=Client,
                         session_ticket_handler=ticket_handler, token_handler=token_handler)
        async with opened as client:
            yield client
