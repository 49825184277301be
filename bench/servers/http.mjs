// Streamable HTTP on 127.0.0.1, with connections kept alive, read by hand: node:http costs more than all the rest.
//
//   POST /json      answered as application/json
//   POST /stream    answered as a stream of one event, and then its end, as the official SDKs' servers do
//   GET             the session's stream of updates; DELETE ends the session
//
// Prints its port once it listens, and ends with its stdin.

import net from 'node:net';
import { randomUUID } from 'node:crypto';
import { answer, counted, updates } from './core.mjs';

const AT_ONCE = 256;
const GET_STREAM_MS = 5000; // how long updates wait for a client that has not opened its stream yet
const STREAM =
  'HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-cache\r\nTransfer-Encoding: chunked\r\n';
const LAST_CHUNK = '0\r\n\r\n';

const streams = new Map(); // the socket of each session's GET
const event = (line) => `event: message\ndata: ${line}\n\n`;
const chunk = (body) => `${Buffer.byteLength(body).toString(16)}\r\n${body}\r\n`;
const bare = (socket, status) => socket.write(`HTTP/1.1 ${status}\r\nContent-Length: 0\r\n\r\n`);

async function emit(session, count) {
  for (const begun = Date.now(); !streams.has(session); ) {
    if (Date.now() - begun > GET_STREAM_MS) return;
    await new Promise((resume) => setTimeout(resume, 5));
  }
  const socket = streams.get(session);
  for (let from = 0; from < count; from += AT_ONCE) {
    const events = updates(from, Math.min(count, from + AT_ONCE)).map(event);
    if (socket.write(chunk(events.join('')))) continue;
    await new Promise((resume) => socket.once('drain', resume).once('close', resume));
  }
}

function reply(socket, path, body, session) {
  const extra = session === undefined ? '' : `Mcp-Session-Id: ${session}\r\n`;
  if (path === '/stream') socket.write(`${STREAM}${extra}\r\n${chunk(event(body))}${LAST_CHUNK}`);
  else {
    const length = Buffer.byteLength(body);
    const head = `HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: ${length}\r\n`;
    socket.write(`${head}${extra}\r\n${body}`);
  }
}

function posted(socket, path, session, body) {
  const message = JSON.parse(body);
  const said = answer(message, (count) => emit(session, count));
  if (said === null) return bare(socket, '202 Accepted');
  const opened = message.method === 'initialize' ? randomUUID() : undefined;
  if (typeof said === 'string') reply(socket, path, said, opened);
  else said.then((later) => reply(socket, path, later, opened));
}

function requested(socket, verb, path, headers, body) {
  const session = headers['mcp-session-id'];
  if (verb === 'POST') posted(socket, path, session, body);
  else if (verb === 'GET' && session !== undefined) {
    socket.write(`${STREAM}\r\n`);
    streams.set(session, socket);
    socket.once('close', () => streams.delete(session));
  } else if (verb === 'DELETE' && session !== undefined) {
    streams.get(session)?.end(LAST_CHUNK);
    bare(socket, '200 OK');
  } else bare(socket, '405 Method Not Allowed');
}

/** The first request in `bytes` and what follows it, or null while it is not whole. */
function split(bytes) {
  const end = bytes.indexOf('\r\n\r\n');
  if (end < 0) return null;
  const [first, ...lines] = bytes.latin1Slice(0, end).split('\r\n');
  const headers = {};
  for (const line of lines) {
    const colon = line.indexOf(':');
    headers[line.slice(0, colon).toLowerCase()] = line.slice(colon + 1).trim();
  }
  const whole = end + 4 + Number(headers['content-length'] ?? 0);
  if (bytes.length < whole) return null;
  const [verb, path] = first.split(' ');
  return { verb, path, headers, body: bytes.utf8Slice(end + 4, whole), rest: bytes.subarray(whole) };
}

const server = net.createServer((socket) => {
  counted.connections += 1;
  socket.setNoDelay(true);
  socket.on('error', () => {}); // a client may leave as it likes
  let bytes = Buffer.alloc(0);
  socket.on('data', (more) => {
    bytes = bytes.length ? Buffer.concat([bytes, more]) : more;
    for (let one = split(bytes); one !== null; one = split(bytes)) {
      bytes = one.rest;
      requested(socket, one.verb, one.path, one.headers, one.body);
    }
  });
});
server.listen(0, '127.0.0.1', () => console.log(server.address().port));
process.stdin.on('end', () => process.exit(0)).resume();
