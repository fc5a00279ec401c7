"""Serves unary and streaming gRPC calls.

Messages are plain bytes without Protocol Buffers, so that no code has to be generated.
"""

import sys
import time
from concurrent import futures

import grpc


def say(message, context):
    """Returns the message. The trailers contain its length and the client's `x-user`."""
    metadata = dict(context.invocation_metadata())
    context.set_trailing_metadata((("x-length", str(len(message))), ("x-user", metadata.get("x-user", ""))))
    return message


def count(message, context):
    """Receives a number and returns that many messages."""
    for number in range(int(message)):
        yield str(number).encode()


def add(messages, context):
    """Receives any number of messages and returns their total length."""
    return str(sum(len(message) for message in messages)).encode()


def both(messages, context):
    """Returns each message as soon as it is received."""
    for message in messages:
        yield message


def refuse(message, context):
    """Fails with an error message."""
    context.abort(grpc.StatusCode.NOT_FOUND, "there is no “" + message.decode() + "”")


def wait(message, context):
    """Returns nothing until the client cancels the call, then prints a line."""
    while context.is_active():
        time.sleep(0.01)
    print("gave up", flush=True)
    return b""


def main():
    server = grpc.server(futures.ThreadPoolExecutor(max_workers=32), options=[("grpc.max_receive_message_length", -1)])
    methods = {
        "Say": grpc.unary_unary_rpc_method_handler(say),
        "Count": grpc.unary_stream_rpc_method_handler(count),
        "Add": grpc.stream_unary_rpc_method_handler(add),
        "Both": grpc.stream_stream_rpc_method_handler(both),
        "Refuse": grpc.unary_unary_rpc_method_handler(refuse),
        "Wait": grpc.unary_unary_rpc_method_handler(wait),
    }
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("example.Echo", methods),))
    port = server.add_insecure_port("127.0.0.1:" + (sys.argv[1] if len(sys.argv) > 1 else "50051"))
    server.start()
    print("listening at", port, flush=True)
    server.wait_for_termination()


main()
