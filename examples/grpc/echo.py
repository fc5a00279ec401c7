"""Serves gRPC calls: with one message, with several, and with each message as it comes.

Messages are bytes as they are, so that no code has to be generated.
"""

import sys
import time
from concurrent import futures

import grpc


def say(message, context):
    """One message, and one back; the client's metadata comes back in the trailers."""
    told = dict(context.invocation_metadata())
    context.set_trailing_metadata((("x-length", str(len(message))), ("x-user", told.get("x-user", ""))))
    return message


def count(message, context):
    """One message with a number, and that many back."""
    for number in range(int(message)):
        yield str(number).encode()


def add(messages, context):
    """Many messages, and their length at the end."""
    return str(sum(len(message) for message in messages)).encode()


def both(messages, context):
    """Each message back as it comes."""
    for message in messages:
        yield message


def refuse(message, context):
    """An error with a message."""
    context.abort(grpc.StatusCode.NOT_FOUND, "there is no “" + message.decode() + "”")


def wait(message, context):
    """Nothing, until the client cancels; the cancellation is reported at the end."""
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
