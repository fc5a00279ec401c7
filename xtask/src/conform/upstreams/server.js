// Server for Node: the responses that every upstream of the step `upstreams` has, and a WebSocket echo (package `ws`).
'use strict';
const { createHash } = require('node:crypto');
const { createServer } = require('node:http');
const { WebSocketServer } = require('ws');

const PIECES = 1000;
let connections = 0;
let go = () => {};

const handlers = {
  '/hello': (_, response) => respond(response, 'hello'),
  '/connections': (_, response) => respond(response, String(connections)),
  '/digest': (request, response) => {
    const digest = createHash('sha256');
    let length = 0;
    request.on('data', (piece) => {
      digest.update(piece);
      length += piece.length;
    });
    request.on('end', () => respond(response, `${length} ${digest.digest('hex')}`));
  },
  '/pieces': (_, response) => {
    response.writeHead(200, { 'Content-Type': 'application/octet-stream' });
    let number = 0;
    const more = () => {
      while (number < PIECES) {
        const piece = String(number++).padStart(4, '0').repeat(250);
        if (!response.write(piece)) return response.once('drain', more);
      }
      response.end();
    };
    more();
  },
  '/go': (_, response) => {
    go();
    respond(response, 'gone');
  },
  // The second event is sent after a client that has read the first has requested /go.
  '/events': (_, response) => {
    go = () => response.end('data: second\n\n');
    response.writeHead(200, { 'Content-Type': 'text/event-stream' });
    response.write('data: first\n\n');
  },
};

function respond(response, content, status = 200) {
  response.writeHead(status, { 'Content-Type': 'text/plain', 'Content-Length': content.length });
  response.end(content);
}

const server = createServer((request, response) => {
  const handler = handlers[request.url.split('?')[0]] ?? (() => respond(response, 'nothing here', 404));
  handler(request, response);
});
server.on('connection', () => connections++);

const sockets = new WebSocketServer({ server, perMessageDeflate: true, handleProtocols: (offered) => [...offered].pop() });
sockets.on('connection', (socket) => {
  socket.on('message', (data, isBinary) => {
    if (!isBinary && data.toString() === 'close') return socket.close(4001, 'as you wish');
    socket.send(data, { binary: isBinary });
  });
});

server.listen(Number(process.argv[2]), '127.0.0.1', () => {
  console.log(`listening on http://127.0.0.1:${server.address().port}`);
});
process.on('SIGTERM', () => {
  sockets.close();
  server.close(() => process.exit(0));
});
