"""Calls the program of examples/grpc through the server at an address: each kind of call, and what can go wrong."""

import queue
import sys

import grpc

PATIENCE = 60
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
    say = through.unary_unary(service + "Say")
    for message in (b"", b"hello", MESSAGE):
        answer, call = say.with_call(message, timeout=PATIENCE, metadata=[("x-user", "Ada")])
        expect(answer, message, "one message")
        trailing = dict(call.trailing_metadata())
        expect(trailing["x-length"], str(len(message)), "metadata behind the answer")
        expect(trailing["x-user"], "Ada", "metadata of the client")

    many = [say.future(MESSAGE, timeout=PATIENCE) for _ in range(50)]
    expect(all(call.result() == MESSAGE for call in many), True, "many calls at once")

    count = through.unary_stream(service + "Count")
    numbers = [str(number).encode() for number in range(1000)]
    expect(list(count(b"1000", timeout=PATIENCE)), numbers, "many messages back")

    add = through.stream_unary(service + "Add")
    expect(add(iter([MESSAGE] * 20), timeout=PATIENCE), str(20 * len(MESSAGE)).encode(), "many messages there")

    both = through.stream_stream(service + "Both")
    # The next message is said when the last has come back.
    said = queue.Queue()
    heard = both(iter(said.get, None), timeout=PATIENCE)
    for message in (b"one", b"two", MESSAGE):
        said.put(message)
        expect(next(heard), message, "in turns")
    said.put(None)
    expect(list(heard), [], "the end of the turns")

    error = status(lambda: through.unary_unary(service + "Refuse")(b"it", timeout=PATIENCE), "an error")
    expect((error.code(), error.details()), (grpc.StatusCode.NOT_FOUND, "there is no “it”"), "an error")
    error = status(lambda: through.unary_unary(service + "None")(b"", timeout=PATIENCE), "no such method")
    expect(error.code(), grpc.StatusCode.UNIMPLEMENTED, "no such method")
    error = status(lambda: through.unary_unary(service + "Wait")(b"", timeout=0.5), "a deadline")
    expect(error.code(), grpc.StatusCode.DEADLINE_EXCEEDED, "a deadline")


def nobody(through):
    say = through.unary_unary("/example.Echo/Say")
    error = status(lambda: say(b"hello", timeout=PATIENCE), "nobody there")
    expect(error.code(), grpc.StatusCode.UNAVAILABLE, "nobody there")


what, address = sys.argv[1:3]
with channel(address, sys.argv[3] if len(sys.argv) > 3 else None) as through:
    {"calls": calls, "nobody": nobody}[what](through)
