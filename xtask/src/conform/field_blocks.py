"""Field blocks between our HPACK and the one of the Python package, both ways, through tables that stay.

field_blocks.py PIPE: PIPE reads `read HEX`, `write NAME:VALUE ...` and `allow N`, a line each.
"""
import random
import subprocess
import sys

from hpack import Decoder, Encoder
from hpack.struct import NeverIndexedHeaderTuple

BLOCKS = 3000
TABLE = 4096  # ours for what we read, as our SETTINGS leave it
SECRET = {b"authorization", b"cookie", b"set-cookie", b"proxy-authorization", b"www-authenticate"}
NAMES = [b":method", b":path", b":scheme", b":authority", b":status", b"accept", b"accept-encoding", b"cache-control",
         b"content-type", b"content-length", b"cookie", b"set-cookie", b"authorization", b"date", b"etag", b"server",
         b"x-a", b"x-request-id", b"x" * 60]
VALUES = [b"", b"GET", b"POST", b"/", b"/index.html", b"http", b"https", b"200", b"404", b"gzip, deflate", b"no-cache",
          b"text/html; charset=utf-8", b"localhost:8080", b"a=b; c=d", b"Sat, 21 Nov 2026 09:00:00 GMT", b"\xff\xfe\x80"]

pipe = subprocess.Popen([sys.argv[1]], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
dice = random.Random(7541)
encoder, decoder = Encoder(), Decoder(max_header_list_size=1 << 30)


def ask(line):
    pipe.stdin.write(line + "\n")
    pipe.stdin.flush()


def answer():
    return pipe.stdout.readline().rstrip("\n")


def field():
    name = dice.choice(NAMES) if dice.random() < 0.9 else bytes(dice.choices(range(97, 123), k=dice.randint(1, 30)))
    if dice.random() < 0.7:
        return name, dice.choice(VALUES)
    # Any bytes that may stand in a value, now and then more of them than a table holds.
    length = dice.randint(1, 5000) if dice.random() < 0.05 else dice.randint(1, 60)
    allowed = [byte for byte in range(33, 256) if byte != 127]
    return name, bytes(dice.choices(allowed, k=length))


read = written = 0
for block in range(BLOCKS):
    fields = [field() for _ in range(dice.randint(0, 25))]

    # Theirs to us: with and without the code of Huffman, indexed or never, tables of changing size.
    if dice.random() < 0.05:
        encoder.header_table_size = dice.choice([0, 1, 64, 1000, TABLE])
    marked = [(n, v, dice.random() < 0.1) for n, v in fields]
    bytes_ = encoder.encode(marked, huffman=dice.random() < 0.7)
    read += len(bytes_)
    ask("read " + bytes_.hex())
    expected = " ".join(f"{n.hex()}:{v.hex()}" for n, v in fields)
    got = answer()
    if got != expected:
        sys.exit(f"block {block} of theirs {bytes_.hex()}\n  read as {got}\n  not     {expected}")

    # Ours to them.
    if dice.random() < 0.05:
        size = dice.choice([0, 100, 1000, 4096, 65536])
        ask(f"allow {size}")
        decoder.max_allowed_table_size = size
    ask("write " + " ".join(f"{n.hex()}:{v.hex()}" for n, v in fields))
    bytes_ = bytes.fromhex(answer())
    written += len(bytes_)
    got = decoder.decode(bytes_, raw=True)
    if [tuple(pair) for pair in got] != fields:
        sys.exit(f"block {block} of ours {bytes_.hex()}\n  read as {got}\n  not     {fields}")
    for pair in got:
        if pair[0] in SECRET and not isinstance(pair, NeverIndexedHeaderTuple) and pair[1]:
            sys.exit(f"block {block} of ours: {pair[0]} may enter a table")

pipe.stdin.close()
if pipe.wait() != 0:
    sys.exit("our side did not end well")
print(f"{BLOCKS} blocks each way are read as they were meant: {read} bytes of theirs, {written} of ours")
