"""Calls the program of examples/grpc through the server at an address: each kind of call, and its errors."""

import queue
import sys

import grpc

TIMEOUT = 60
MESSAGE = bytes(range(256)) * 4096
OPTIONS = [("grpc.max_receive_message_length", -1), ("grpc.ssl_target_name_override", "localhost")]


def channel(address, roots):
    if roots is None:
        return grpc.insecure_channel(address, OPTIONS)
    with open(roots, "rb") as file:
        return grpc.secure_channel(address, grpc.ssl_channel_credentials(file.read()), OPTIONS)


def expect(found, wanted, what):
    if found != wanted:
        sys.exit(f"{what}: {found!r}, not {wanted!r}")


def status(call, what):
    try:
        call()
    except grpc.RpcError as error:
        return error
    sys.exit(f"{what}: no error")


def calls(through):
    service = "/example.Echo/"
    unary = through.unary_unary(service + "Say")
    for message in (b"", b"hello", MESSAGE):
        response, call = unary.with_call(message, timeout=TIMEOUT, metadata=[("x-user", "Ada")])
        expect(response, message, "one message")
        trailing = dict(call.trailing_metadata())
        expect(trailing["x-length"], str(len(message)), "trailing metadata")
        expect(trailing["x-user"], "Ada", "metadata of the client")

    many = [unary.future(MESSAGE, timeout=TIMEOUT) for _ in range(50)]
    expect(all(call.result() == MESSAGE for call in many), True, "many calls at once")

    count = through.unary_stream(service + "Count")
    numbers = [str(number).encode() for number in range(1000)]
    expect(list(count(b"1000", timeout=TIMEOUT)), numbers, "many messages back")

    add = through.stream_unary(service + "Add")
    expect(add(iter([MESSAGE] * 20), timeout=TIMEOUT), str(20 * len(MESSAGE)).encode(), "many messages there")

    both = through.stream_stream(service + "Both")
    # The next message is sent after the previous one has come back.
    requests = queue.Queue()
    responses = both(iter(requests.get, None), timeout=TIMEOUT)
    for message in (b"one", b"two", MESSAGE):
        requests.put(message)
        expect(next(responses), message, "one message at a time")
    requests.put(None)
    expect(list(responses), [], "the end of the stream")

    error = status(lambda: through.unary_unary(service + "Refuse")(b"it", timeout=TIMEOUT), "an error")
    expect((error.code(), error.details()), (grpc.StatusCode.NOT_FOUND, "there is no “it”"), "an error")
    error = status(lambda: through.unary_unary(service + "None")(b"", timeout=TIMEOUT), "no such method")
    expect(error.code(), grpc.StatusCode.UNIMPLEMENTED, "no such method")
    error = status(lambda: through.unary_unary(service + "Wait")(b"", timeout=0.5), "a deadline")
    expect(error.code(), grpc.StatusCode.DEADLINE_EXCEEDED, "a deadline")


def unavailable(through):
    unary = through.unary_unary("/example.Echo/Say")
    error = status(lambda: unary(b"hello", timeout=TIMEOUT), "a missing server")
    expect(error.code(), grpc.StatusCode.UNAVAILABLE, "a missing server")


test, address = sys.argv[1:3]
with channel(address, sys.argv[3] if len(sys.argv) > 3 else None) as through:
    {"calls": calls, "unavailable": unavailable}[test](through)
