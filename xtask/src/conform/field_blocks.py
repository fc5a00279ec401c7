"""Exchanges field blocks between RockNet's HPACK and the package `hpack`, with one dynamic table per direction.

field_blocks.py PIPE: PIPE reads the commands `read HEX`, `write NAME:VALUE ...` and `allow N`, one per line.
"""
import random
import subprocess
import sys

from hpack import Decoder, Encoder
from hpack.struct import NeverIndexedHeaderTuple

BLOCKS = 3000
TABLE = 4096  # size of the table in RockNet's decoder, the default of SETTINGS
SECRET = {b"authorization", b"cookie", b"set-cookie", b"proxy-authorization", b"www-authenticate"}
NAMES = [b":method", b":path", b":scheme", b":authority", b":status", b"accept", b"accept-encoding", b"cache-control",
         b"content-type", b"content-length", b"cookie", b"set-cookie", b"authorization", b"date", b"etag", b"server",
         b"x-a", b"x-request-id", b"x" * 60]
VALUES = [b"", b"GET", b"POST", b"/", b"/index.html", b"http", b"https", b"200", b"404", b"gzip, deflate", b"no-cache",
          b"text/html; charset=utf-8", b"localhost:8080", b"a=b; c=d", b"Sat, 21 Nov 2026 09:00:00 GMT", b"\xff\xfe\x80"]

pipe = subprocess.Popen([sys.argv[1]], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
dice = random.Random(7541)
encoder, decoder = Encoder(), Decoder(max_header_list_size=1 << 30)


def send(line):
    pipe.stdin.write(line + "\n")
    pipe.stdin.flush()


def receive():
    return pipe.stdout.readline().rstrip("\n")


def field():
    name = dice.choice(NAMES) if dice.random() < 0.9 else bytes(dice.choices(range(97, 123), k=dice.randint(1, 30)))
    if dice.random() < 0.7:
        return name, dice.choice(VALUES)
    # Any bytes that a value may contain, sometimes more than fit into the table.
    length = dice.randint(1, 5000) if dice.random() < 0.05 else dice.randint(1, 60)
    allowed = [byte for byte in range(33, 256) if byte != 127]
    return name, bytes(dice.choices(allowed, k=length))


read = written = 0
for block in range(BLOCKS):
    fields = [field() for _ in range(dice.randint(0, 25))]

    # The encoder of hpack and RockNet's decoder: with and without Huffman coding, indexed or never indexed, and with
    # tables of varying size.
    if dice.random() < 0.05:
        encoder.header_table_size = dice.choice([0, 1, 64, 1000, TABLE])
    marked = [(n, v, dice.random() < 0.1) for n, v in fields]
    bytes_ = encoder.encode(marked, huffman=dice.random() < 0.7)
    read += len(bytes_)
    send("read " + bytes_.hex())
    expected = " ".join(f"{n.hex()}:{v.hex()}" for n, v in fields)
    got = receive()
    if got != expected:
        sys.exit(f"block {block} by hpack: {bytes_.hex()}\n  decoded as {got}\n  not     {expected}")

    # RockNet's encoder and the decoder of hpack.
    if dice.random() < 0.05:
        size = dice.choice([0, 100, 1000, 4096, 65536])
        send(f"allow {size}")
        decoder.max_allowed_table_size = size
    send("write " + " ".join(f"{n.hex()}:{v.hex()}" for n, v in fields))
    bytes_ = bytes.fromhex(receive())
    written += len(bytes_)
    got = decoder.decode(bytes_, raw=True)
    if [tuple(pair) for pair in got] != fields:
        sys.exit(f"block {block} by RockNet: {bytes_.hex()}\n  decoded as {got}\n  not     {fields}")
    for pair in got:
        if pair[0] in SECRET and not isinstance(pair, NeverIndexedHeaderTuple) and pair[1]:
            sys.exit(f"block {block} by RockNet: {pair[0]} is not marked as never indexed")

pipe.stdin.close()
if pipe.wait() != 0:
    sys.exit("hpack_pipe failed")
print(f"{BLOCKS} blocks in each direction decoded correctly: {read} bytes by hpack, {written} by RockNet")
