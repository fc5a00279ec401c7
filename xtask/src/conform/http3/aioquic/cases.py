"""Cases of HTTP/3 with aioquic as the client.

cases.py PORT ROOTS FOLDER CASE ...: FOLDER has the files of the site at PORT, whose routes below `/app/` lead to an
upstream with `asgi.py`. Prints one line for each case, and fails at the first wrong result.
"""

import asyncio
import hashlib
import sys
from pathlib import Path

from aioquic.buffer import encode_uint_var
from aioquic.tls import CipherSuite, Epoch

from client import Target
from half_open import HalfOpen
from violations import violations
from websocket import websocket

PORT, ROOTS, FOLDER = int(sys.argv[1]), sys.argv[2], Path(sys.argv[3])
# Seconds for one case: far longer than a busy machine needs.
TIMEOUT = 120
PARALLEL = 100
# Bytes of request bodies, and pseudo-random bytes for them: more than all receive windows.
UPLOAD = 5_000_000
BYTES = hashlib.shake_128(b"upload").digest(UPLOAD)
# A version that no server knows (RFC 9000, section 15).
UNKNOWN_VERSION, VERSION_1 = 0x1A2A3A4A, 1
# Handshakes in progress at which the server requires Retry, and some more.
HALF_OPEN = 270
REQUEST_CANCELLED = 0x010C


def equal(found, expected, what):
    if found != expected:
        raise AssertionError(f"{what}: {found!r}, not {expected!r}")


def file(name):
    return (FOLDER / name).read_bytes()


async def files(target):
    """Small files, HEAD, a part of a file, conditional requests, and paths that do not exist."""
    async with target.connection() as client:
        small = file("small.txt")
        for path, options, status, body in [
            ("/small.txt", {}, 200, small),
            ("/small.txt", {"method": "HEAD"}, 200, b""),
            ("/small.txt", {"fields": [("range", "bytes=0-7")]}, 206, small[:8]),
            ("/small.txt", {"fields": [("if-modified-since", "Fri, 01 Jan 2100 00:00:00 GMT")]}, 304, b""),
            ("/small.txt", {"method": "DELETE"}, 405, None),
            ("/large.bin", {"method": "HEAD"}, 200, b""),
            ("/nowhere", {}, 404, None),
            ("/nowhere", {"method": "HEAD"}, 404, b""),
        ]:
            response = await client.get(path, **options)
            equal(response.status, status, path)
            if body is not None:
                equal(bytes(response.body), body, f"body of {path} {options}")
            if options.get("method") == "HEAD" and status == 200:
                equal(response.field("content-length"), str(len(file(path[1:]))), f"length of {path}")
        equal((await client.get("/small.txt")).field("content-type"), "text/plain; charset=utf-8", "media type")


async def large(target):
    """20 MB, larger than all windows."""
    async with target.connection() as client:
        response = await client.get("/large.bin", keeps_body=False)
        equal(response.digest.hexdigest(), hashlib.sha256(file("large.bin")).hexdigest(), "digest of the body")


async def parallel(target):
    """Requests in parallel on one connection, each for another file."""
    async with target.connection() as client:
        names = [f"parts/{number}.txt" for number in range(PARALLEL)]
        responses = [client.request("/" + name) for name in names]
        for name, response in zip(names, responses):
            equal(bytes((await response.whole()).body), file(name), name)


async def upload(target):
    """Request bodies to an upstream, with and without their length."""
    expected = f"{UPLOAD} {hashlib.sha256(BYTES).hexdigest()}"
    async with target.connection() as client:
        for fields in ([("content-length", str(UPLOAD))], []):
            response = await client.get("/app/digest", method="POST", fields=fields, body=BYTES)
            equal((response.status, response.body.decode()), (200, expected), "digest by the upstream")
        response = await client.get("/app/pieces")
        equal(bytes(response.body), b"".join(b"%04d" % number * 250 for number in range(1000)), "pieces")


async def qpack(target):
    """Both dynamic tables are used: each side inserts entries, and the other side acknowledges them."""
    async with target.connection() as client:
        await client.settings()
        fields = [("user-agent", "aioquic of the conformance tests"), ("x-tide", "ebb"), ("cookie", "harbour=north")]
        for _ in range(20):
            response = await client.get("/app/hello", fields=fields)
            equal((response.status, bytes(response.body)), (200, b"hello"), "response")
            equal(response.field("x-site"), "A value that is worth an entry", "field of the site")
        http = client.http
        for what, count in [
            ("instructions of the client", http._encoder_bytes_sent),
            ("acknowledgments of the server", http._decoder_bytes_received),
            ("instructions of the server", http._encoder_bytes_received),
            ("acknowledgments of the client", http._decoder_bytes_sent),
        ]:
            if count == 0:
                raise AssertionError(f"no {what}")


async def key_update(target):
    """The client changes the keys in mid-transfer, more than once."""
    async with target.connection() as client:
        response = client.request("/large.bin", keeps_body=False)
        keys = client.quic._cryptos[Epoch.ONE_RTT].recv
        for received in (2_000_000, 6_000_000, 10_000_000):
            await response.until(lambda: response.length > received)
            phase = keys.key_phase
            client.request_key_update()
            # aioquic changes the keys of both directions with its next packet. After that, it decrypts only packets
            # of a server that has followed, so the rest of the body is the proof.
            await response.until(lambda: keys.key_phase != phase)
        await response.whole()
        equal(response.digest.hexdigest(), hashlib.sha256(file("large.bin")).hexdigest(), "digest of the body")


async def version_negotiation(target):
    """The first packet has an unknown version; the server responds with those that it supports."""
    versions = [UNKNOWN_VERSION, VERSION_1]
    async with target.connection(original_version=UNKNOWN_VERSION, supported_versions=versions) as client:
        equal(client.quic._version_negotiated_incompatible, True, "Version Negotiation received")
        equal(client.quic._version, VERSION_1, "version")
        equal(bytes((await client.get("/small.txt")).body), file("small.txt"), "body")


async def ciphers(target):
    """Each cipher suite of QUIC on its own."""
    suites = [CipherSuite.AES_128_GCM_SHA256, CipherSuite.AES_256_GCM_SHA384, CipherSuite.CHACHA20_POLY1305_SHA256]
    for suite in suites:
        async with target.connection(cipher_suites=[suite]) as client:
            equal(client.quic.tls.key_schedule.cipher_suite, suite, "cipher suite")
            equal(bytes((await client.get("/parts/7.txt")).body), file("parts/7.txt"), f"body with {suite.name}")


async def resumption(target):
    """A session ticket and an address validation token of one connection are valid for the next one."""
    tickets, tokens = asyncio.Queue(), asyncio.Queue()
    async with target.connection(ticket_handler=tickets.put_nowait, token_handler=tokens.put_nowait) as client:
        equal(client.handshake.session_resumed, False, "first session resumed")
        await client.get("/small.txt")
        ticket, token = await tickets.get(), await tokens.get()
    async with target.connection(session_ticket=ticket, token=token) as client:
        equal(client.handshake.session_resumed, True, "second session resumed")
        equal(bytes((await client.get("/small.txt")).body), file("small.txt"), "body")


async def address_change(target):
    """The client continues a download from another port and with another connection ID."""
    async with target.connection() as client:
        response = client.request("/large.bin", keeps_body=False)
        for received in (2_000_000, 6_000_000):
            await response.until(lambda: response.length > received)
            await client.change_address()
        await response.whole()
        equal(response.digest.hexdigest(), hashlib.sha256(file("large.bin")).hexdigest(), "digest of the body")


async def cancellation(target):
    """Downloads that the client abandons do not disturb other requests of the connection."""
    async with target.connection() as client:
        for _ in range(PARALLEL // 10):
            response = client.request("/large.bin", keeps_body=False)
            await response.until(lambda: response.length > 0)
            client.quic.stop_stream(response.stream, REQUEST_CANCELLED)
            client.transmit()
            equal(bytes((await client.get("/small.txt")).body), file("small.txt"), "body")


async def reserved(target):
    """Streams and frames of reserved types are ignored (RFC 9114, section 9)."""
    async with target.connection() as client:
        quic, payload = client.quic, b"anything at all"
        stream = quic.get_next_available_stream_id(is_unidirectional=True)
        quic.send_stream_data(stream, encode_uint_var(0x1F * 7 + 0x21) + payload, end_stream=True)
        response = client.request("/app/digest", method="POST", is_open=True)
        frame = encode_uint_var(0x1F * 9 + 0x21) + encode_uint_var(len(payload)) + payload
        quic.send_stream_data(response.stream, frame)
        client.http.send_data(response.stream, payload, end_stream=False)
        quic.send_stream_data(response.stream, frame, end_stream=True)
        client.transmit()
        await response.whole()
        expected = f"{len(payload)} {hashlib.sha256(payload).hexdigest()}"
        equal((response.status, response.body.decode()), (200, expected), "digest by the upstream")


async def events(target):
    """Server-sent events: the upstream sends the second one after the client has read the first."""
    async with target.connection() as client:
        stream = client.request("/app/events")
        await stream.until(lambda: stream.body.endswith(b"\n\n"))
        equal(bytes(stream.body), b"data: first\n\n", "first event")
        equal(bytes((await client.get("/app/go")).body), b"gone", "response to /go")
        await stream.whole()
        equal(bytes(stream.body), b"data: first\n\ndata: second\n\n", "events")


async def retry(target):
    """While many handshakes are in progress, a client has to prove its address before it gets a connection."""
    async with target.connection() as client:
        equal(client.quic._retry_count, 0, "Retry packets without load")
    half_open = HalfOpen(target)
    await half_open.begin(HALF_OPEN)
    async with target.connection() as client:
        equal(client.quic._retry_count, 1, "Retry packets under load")
        equal(bytes((await client.get("/small.txt")).body), file("small.txt"), "body")
    half_open.close()


CASES = [files, large, parallel, upload, qpack, key_update, version_negotiation, ciphers, resumption, address_change,
         cancellation, reserved, violations, events, websocket, retry]


async def main():
    target, named = Target(PORT, ROOTS), sys.argv[4:]
    for case in CASES:
        if case.__name__ in named:
            try:
                await asyncio.wait_for(case(target), TIMEOUT)
            except Exception as error:
                raise SystemExit(f"{case.__name__}: {type(error).__name__}: {error}") from error
            print(f"{case.__name__}: {case.__doc__}", flush=True)
            named.remove(case.__name__)
    if named:
        raise SystemExit(f"unknown cases: {named}")


asyncio.run(main())
