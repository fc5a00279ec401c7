"""Exchanges field sections between RockNet's QPACK and the package `pylsqpack`, with dynamic tables in both directions.

field_sections.py PIPE: PIPE is RockNet's side, with the commands of `examples/qpack_pipe.rs`. The four streams of QPACK
are independent in QUIC, so instructions, sections and acknowledgments are delivered late and in pieces.
"""

import random
import subprocess
import sys

from pylsqpack import Decoder, Encoder, StreamBlocked

SECTIONS = 1500
# What RockNet's decoder permits, as in `examples/qpack_pipe.rs`.
PERMITTED_CAPACITY, PERMITTED_BLOCKED = 4096, 16
# What the decoder of `pylsqpack` permits, one connection each: capacity of the table, and number of blocked streams.
SETTINGS = [(0, 0), (4096, 0), (4096, 16), (200, 100), (65536, 1)]
NAMES = [b":method", b":path", b":scheme", b":authority", b":status", b"accept", b"accept-encoding", b"cache-control",
         b"content-type", b"content-length", b"cookie", b"set-cookie", b"authorization", b"date", b"etag", b"server",
         b"x-a", b"x-request-id", b"x" * 60]
VALUES = [b"", b"GET", b"POST", b"/", b"/index.html", b"http", b"https", b"200", b"404", b"gzip, deflate", b"no-cache",
          b"text/html; charset=utf-8", b"localhost:8080", b"a=b; c=d", b"Sat, 21 Nov 2026 09:00:00 GMT", b"\xff\xfe\x80"]
dice = random.Random(9204)


def fields():
    return [field() for _ in range(dice.randint(1, 25))]


def field():
    name = dice.choice(NAMES) if dice.random() < 0.9 else bytes(dice.choices(range(97, 123), k=dice.randint(1, 30)))
    if dice.random() < 0.7:
        return name, dice.choice(VALUES)
    # Any bytes that a value may contain, sometimes more than fit into the table.
    length = dice.randint(1, 5000) if dice.random() < 0.05 else dice.randint(1, 60)
    return name, bytes(dice.choices([byte for byte in range(33, 256) if byte != 127], k=length))


def text(pairs):
    return " ".join(f"{name.hex()}:{value.hex()}" for name, value in pairs)


class RockNet:
    """RockNet's side of a connection."""

    def __init__(self):
        self._pipe = subprocess.Popen([sys.argv[1]], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def run(self, line):
        self._pipe.stdin.write(line + "\n")
        self._pipe.stdin.flush()
        response = self._pipe.stdout.readline().rstrip("\n")
        if response.startswith("refused"):
            sys.exit(f"RockNet: {response}: {line[:200]}")
        return response

    def close(self):
        self._pipe.stdin.close()
        if self._pipe.wait() != 0:
            sys.exit("qpack_pipe failed")


class Delay:
    """A stream whose bytes arrive late and in pieces."""

    def __init__(self, deliver):
        self._deliver = deliver
        self._bytes = b""

    def send(self, data):
        self._bytes += data
        if dice.random() < 0.4:
            self.flush(dice.randint(0, len(self._bytes)))

    def flush(self, length=None):
        data, self._bytes = self._bytes[:length], self._bytes[len(self._bytes) if length is None else length:]
        if data:
            self._deliver(data)


class Reading:
    """Sections of the encoder of `pylsqpack`, for RockNet's decoder."""

    def __init__(self, rocknet):
        self._rocknet = rocknet
        self._encoder = Encoder()
        self._blocked = {}
        self.bytes = self.blocked = self.feedback = self.instructions = 0
        self._encoder_stream = Delay(self._instruct)
        self._decoder_stream = Delay(self._encoder.feed_decoder)
        self._encoder_stream.send(self._encoder.apply_settings(PERMITTED_CAPACITY, PERMITTED_BLOCKED))

    def section(self, stream):
        expected = fields()
        instructions, section = self._encoder.encode(stream, expected)
        self.instructions += len(instructions)
        self.bytes += len(section)
        # An encoder that keeps the limit never blocks more streams, so the section may overtake the instructions.
        self._encoder_stream.send(instructions)
        self._read(stream, section, text(expected))
        self._retry()

    def finish(self):
        self._encoder_stream.flush()
        self._retry()
        self._decoder_stream.flush()
        if self._blocked:
            sys.exit(f"sections stay blocked: {list(self._blocked)}")

    def _instruct(self, data):
        self._rocknet.run("instructions " + data.hex())

    def _read(self, stream, section, expected):
        found = self._rocknet.run(f"read {stream} {section.hex()}")
        if found == "blocked":
            self.blocked += stream not in self._blocked
            self._blocked[stream] = section, expected
        elif found != expected:
            sys.exit(f"section by pylsqpack: {section.hex()}\n  decoded as {found}\n  not        {expected}")
        else:
            self._blocked.pop(stream, None)

    def _retry(self):
        for stream, (section, expected) in list(self._blocked.items()):
            if dice.random() < 0.02:
                # The client has abandoned the stream, so that its references are released unread.
                self._rocknet.run(f"cancel {stream}")
                del self._blocked[stream]
            else:
                self._read(stream, section, expected)
        feedback = bytes.fromhex(self._rocknet.run("acknowledge"))
        self.feedback += len(feedback)
        self._decoder_stream.send(feedback)


class Writing:
    """Sections of RockNet's encoder, for the decoder of `pylsqpack`."""

    def __init__(self, rocknet, capacity, blocked):
        self._rocknet = rocknet
        self._decoder = Decoder(capacity, blocked)
        self._blocked_max = blocked
        self._blocked = {}
        self.bytes = self.blocked = self.instructions = 0
        self._encoder_stream = Delay(self._instruct)
        self._decoder_stream = Delay(lambda data: rocknet.run("feedback " + data.hex()))
        self._encoder_stream.send(bytes.fromhex(rocknet.run(f"settings {capacity} {blocked}")))

    def section(self, stream):
        expected = fields()
        section, instructions = map(bytes.fromhex, self._rocknet.run(f"write {stream} {text(expected)}").split(","))
        self.instructions += len(instructions)
        self.bytes += len(section)
        self._encoder_stream.send(instructions)
        try:
            self._check(self._decoder.feed_header(stream, section), expected)
        except StreamBlocked:
            self.blocked += 1
            self._blocked[stream] = expected
            if len(self._blocked) > self._blocked_max:
                sys.exit(f"RockNet blocks {len(self._blocked)} streams, {self._blocked_max} are permitted")

    def finish(self):
        self._encoder_stream.flush()
        self._decoder_stream.flush()
        if self._blocked:
            sys.exit(f"sections stay blocked: {list(self._blocked)}")

    def _instruct(self, data):
        for stream in self._decoder.feed_encoder(data):
            self._check(self._decoder.resume_header(stream), self._blocked.pop(stream))

    def _check(self, decoded, expected):
        feedback, found = decoded
        if found != expected:
            sys.exit(f"section by RockNet decoded as {found}\n  not {expected}")
        self._decoder_stream.send(feedback)


read = written = blocked_read = blocked_written = 0
for capacity, blocked in SETTINGS:
    rocknet = RockNet()
    reading, writing = Reading(rocknet), Writing(rocknet, capacity, blocked)
    for number in range(SECTIONS):
        reading.section(number * 4)
        writing.section(number * 4)
    reading.finish()
    writing.finish()
    rocknet.close()
    read, written = read + reading.bytes, written + writing.bytes
    blocked_read, blocked_written = blocked_read + reading.blocked, blocked_written + writing.blocked
    if reading.instructions == 0 or reading.feedback == 0:
        sys.exit("pylsqpack did not use its dynamic table")
    if (writing.instructions > 0) != (capacity > 0):
        sys.exit(f"{writing.instructions} bytes of instructions by RockNet with a table of {capacity} bytes")
if not blocked_read or not blocked_written:
    sys.exit(f"{blocked_read} and {blocked_written} sections were blocked, so that nothing was tested there")
print(f"{SECTIONS * len(SETTINGS)} sections in each direction decoded correctly: {read} bytes by pylsqpack "
      f"({blocked_read} blocked), {written} by RockNet ({blocked_written} blocked)")
