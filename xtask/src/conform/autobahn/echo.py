"""Echoes every WebSocket message. If the client offers compression, it is used at the lowest and fastest level."""

import asyncio
import sys

from websockets.asyncio.server import serve
from websockets.extensions.permessage_deflate import ServerPerMessageDeflateFactory


async def echo(connection):
    async for message in connection:
        await connection.send(message)


async def main():
    deflate = ServerPerMessageDeflateFactory(compress_settings={"level": 1})
    port = int(sys.argv[1])
    async with serve(echo, "127.0.0.1", port, extensions=[deflate], compression=None, max_size=None, ping_interval=None):
        await asyncio.get_running_loop().create_future()


asyncio.run(main())
