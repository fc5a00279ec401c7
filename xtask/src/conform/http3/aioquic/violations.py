"""Violations of HTTP/3 and QPACK, each with the error code with which the server closes the connection."""

from aioquic.buffer import encode_uint_var
from aioquic.h3.connection import ErrorCode, FrameType, encode_frame, encode_settings

# Type of the frame PRIORITY of HTTP/2, which is forbidden in HTTP/3 (RFC 9114, section 7.2.8).
FRAME_OF_HTTP2 = 0x2
CONTROL_STREAM, PUSH_STREAM = 0x0, 0x1
HEAD = [(b":method", b"GET"), (b":scheme", b"https"), (b":authority", b"localhost"), (b":path", b"/small.txt")]


async def violations(target):
    """Frames and instructions that are wrong, or right at a wrong place: the error code names each."""
    for name, (expected, act) in CASES.items():
        async with target.connection() as client:
            await client.settings()
            act(client)
            client.transmit()
            found = (await client.closed()).error_code
            if found != expected:
                raise AssertionError(f"{name}: closed with {found:#x}, not {expected:#x}")
    # Another client is served as before.
    async with target.connection() as client:
        await client.get("/small.txt")


def control(data, end=False):
    """Sends bytes on the control stream."""
    return lambda client: client.quic.send_stream_data(client.http._local_control_stream_id, data, end)


def request(*frames, end=True):
    """Sends frames on a new request stream."""
    def act(client):
        client.quic.send_stream_data(client.quic.get_next_available_stream_id(), b"".join(frames), end)
    return act


def unidirectional(data):
    """Opens a unidirectional stream that begins with these bytes."""
    def act(client):
        client.quic.send_stream_data(client.quic.get_next_available_stream_id(is_unidirectional=True), data)
    return act


def encoder(data):
    return lambda client: client.quic.send_stream_data(client.http._local_encoder_stream_id, data)


def decoder(data):
    return lambda client: client.quic.send_stream_data(client.http._local_decoder_stream_id, data)


def data_after_trailers(client):
    """A DATA frame after the trailers of a request."""
    stream = client.quic.get_next_available_stream_id()
    for fields in (HEAD, [(b"x-trailer", b"1")]):
        section = client.http._encode_headers(stream, fields)
        client.quic.send_stream_data(stream, encode_frame(FrameType.HEADERS, section))
    client.quic.send_stream_data(stream, encode_frame(FrameType.DATA, b"late"), True)


DATA = encode_frame(FrameType.DATA, b"early")
CASES = {
    "a second control stream": (ErrorCode.H3_STREAM_CREATION_ERROR, unidirectional(encode_uint_var(CONTROL_STREAM))),
    "a push stream of the client": (ErrorCode.H3_STREAM_CREATION_ERROR, unidirectional(encode_uint_var(PUSH_STREAM))),
    "the end of the control stream": (ErrorCode.H3_CLOSED_CRITICAL_STREAM, control(b"", end=True)),
    "DATA on the control stream": (ErrorCode.H3_FRAME_UNEXPECTED, control(DATA)),
    "HEADERS on the control stream": (ErrorCode.H3_FRAME_UNEXPECTED, control(encode_frame(FrameType.HEADERS, b""))),
    "a second SETTINGS frame": (ErrorCode.H3_FRAME_UNEXPECTED,
                                control(encode_frame(FrameType.SETTINGS, encode_settings({})))),
    "a frame of HTTP/2": (ErrorCode.H3_FRAME_UNEXPECTED, control(encode_frame(FRAME_OF_HTTP2, b"\0" * 5))),
    "a smaller MAX_PUSH_ID": (ErrorCode.H3_ID_ERROR, control(encode_frame(FrameType.MAX_PUSH_ID, b"\0"))),
    "a GOAWAY frame of two numbers": (ErrorCode.H3_FRAME_ERROR, control(encode_frame(FrameType.GOAWAY, b"\0\0"))),
    "DATA before HEADERS": (ErrorCode.H3_FRAME_UNEXPECTED, request(DATA)),
    "DATA after the trailers": (ErrorCode.H3_FRAME_UNEXPECTED, data_after_trailers),
    "SETTINGS on a request stream": (ErrorCode.H3_FRAME_UNEXPECTED, request(encode_frame(FrameType.SETTINGS, b""))),
    "PUSH_PROMISE of the client": (ErrorCode.H3_FRAME_UNEXPECTED,
                                   request(encode_frame(FrameType.PUSH_PROMISE, b"\0\0\0"))),
    "a frame that is cut off": (ErrorCode.H3_FRAME_ERROR, request(b"\x01\x20\x00\x00")),
    "an index outside of the static table": (ErrorCode.QPACK_DECOMPRESSION_FAILED,
                                             request(encode_frame(FrameType.HEADERS, b"\0\0\xff\x40"))),
    "a capacity above the announced one": (ErrorCode.QPACK_ENCODER_STREAM_ERROR, encoder(b"\x3f\xff\xff\xff\x0f")),
    "a duplicate of a missing entry": (ErrorCode.QPACK_ENCODER_STREAM_ERROR, encoder(b"\x1f\xff\x01")),
    "an increment of 0": (ErrorCode.QPACK_DECODER_STREAM_ERROR, decoder(b"\x00")),
    "an acknowledgment of no section": (ErrorCode.QPACK_DECODER_STREAM_ERROR, decoder(b"\x80")),
}
