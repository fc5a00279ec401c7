"""Handshakes that begin and do not continue, so that the server keeps a connection for each."""

import asyncio

from aioquic.quic.connection import QuicConnection


class HalfOpen(asyncio.DatagramProtocol):
    """Clients that send their first flight and then ignore the server."""

    def __init__(self, target):
        self._target = target
        self._transport = None
        self._answered = set()
        self._changed = asyncio.Event()

    async def begin(self, count):
        """Begins handshakes and waits until the server has responded to each of them."""
        loop = asyncio.get_running_loop()
        address = ("127.0.0.1", self._target.port)
        self._transport, _ = await loop.create_datagram_endpoint(lambda: self, remote_addr=address)
        for _ in range(count):
            client = QuicConnection(configuration=self._target.configuration())
            client.connect(address, now=loop.time())
            self._changed.clear()
            answered = len(self._answered)
            for datagram, _ in client.datagrams_to_send(now=loop.time()):
                self._transport.sendto(datagram)
            while len(self._answered) == answered:
                await self._changed.wait()
                self._changed.clear()

    def datagram_received(self, data, address):
        # The destination of a packet with a long header is the connection ID of the client (RFC 9000, section 17.2).
        if data[0] & 0x80:
            self._answered.add(data[6 : 6 + data[5]])
            self._changed.set()

    def close(self):
        self._transport.close()
