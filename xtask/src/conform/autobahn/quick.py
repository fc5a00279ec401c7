"""Autobahn's client without the two parts that take most of its time and have no effect on the verdicts here.

UTF-8 is not checked, and messages are compressed at the lowest level. The cases of compressed messages compare the digests
of sent and received messages, so a wrong message is still detected.
"""

import zlib

from autobahn.websocket import protocol
from autobahntestsuite import wstest


class Validator(object):
    def __init__(self):
        self.reset()

    def reset(self):
        self.total = 0

    def validate(self, content):
        """Returns: valid; ends with a complete character; position in this text; position in all texts."""
        self.total += len(content)
        return True, True, len(content), self.total


protocol.Utf8Validator = Validator
zlib.Z_DEFAULT_COMPRESSION = zlib.Z_BEST_SPEED
wstest.run()
