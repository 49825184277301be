// What both servers answer: MCP 2025-11-25 without an SDK and without checks. Answers are put together as
// text, so that a call costs the server a small part of what it costs the fastest client.
//
// Tools: echo{message}, blob{size}, emit{count}, stats{}; and silence{}, which over stdio is never answered.

const PAGE = 'The quick brown fox said "hello" and went on.\n\t{"k": 12345, "ok": true, "path": "/srv/file.txt"}\n';
const RESOURCES = 64;

const schema = (properties) => ({ type: 'object', properties, required: Object.keys(properties) });
const TOOLS = JSON.stringify({
  tools: [
    { name: 'echo', description: 'Say it back', inputSchema: schema({ message: { type: 'string' } }) },
    { name: 'blob', description: 'So many characters of text', inputSchema: schema({ size: { type: 'integer' } }) },
    { name: 'emit', description: 'Send so many updates, then answer', inputSchema: schema({ count: { type: 'integer' } }) },
    { name: 'stats', description: 'What this server has counted', inputSchema: schema({}) },
  ],
});
const HELLO = JSON.stringify({
  protocolVersion: '2025-11-25',
  capabilities: { tools: {}, resources: { subscribe: true, listChanged: true } },
  serverInfo: { name: 'bench', version: '1' },
});
const EMPTY = { 'resources/list': '{"resources":[]}', 'resources/templates/list': '{"resourceTemplates":[]}', 'prompts/list': '{"prompts":[]}' };

/** Of this process: what `stats` tells. */
export const counted = { connections: 0 };
const blobs = new Map();

const result = (id, body) => `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":${body}}`;
const error = (id, code, message) =>
  `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"error":{"code":${code},"message":${JSON.stringify(message)}}}`;
const text = (body) => `{"content":[{"type":"text","text":${body}}]}`;

function blob(size) {
  if (!blobs.has(size)) {
    const page = PAGE.repeat(Math.ceil(size / PAGE.length)).slice(0, size);
    blobs.set(size, text(JSON.stringify(page)));
  }
  return blobs.get(size);
}

function stats() {
  const { user, system } = process.cpuUsage();
  // Not as JSON: some clients would take that apart.
  return text(`"connections=${counted.connections} cpu_us=${user + system}"`);
}

/** The updates from number `from` up to `to`, as lines of JSON. */
export function updates(from, to) {
  const lines = [];
  for (let i = from; i < to; i++) {
    const uri = `bench://item/${i % RESOURCES}`;
    lines.push(`{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"${uri}"}}`);
  }
  return lines;
}

/** The answer to a message: text, a promise of text, or null where it wants none. */
export function answer(message, emit) {
  const { id, method, params } = message;
  if (id === undefined || method === undefined) return null;
  if (EMPTY[method] !== undefined) return result(id, EMPTY[method]);
  switch (method) {
    case 'initialize':
      return result(id, HELLO);
    case 'tools/list':
      return result(id, TOOLS);
    case 'resources/read':
      return result(id, `{"contents":[{"uri":${JSON.stringify(params.uri)},"text":"content"}]}`);
    case 'resources/subscribe':
    case 'resources/unsubscribe':
    case 'ping':
      return result(id, '{}');
    case 'tools/call':
      return called(id, params.name, params.arguments ?? {}, emit);
    default:
      return error(id, -32601, 'Method not found');
  }
}

function called(id, tool, args, emit) {
  switch (tool) {
    case 'echo':
      return result(id, text(JSON.stringify(args.message)));
    case 'blob':
      return result(id, blob(args.size));
    case 'emit':
      return emit(args.count).then(() => result(id, text('"sent"')));
    case 'stats':
      return result(id, stats());
    case 'silence':
      return null;
    default:
      return error(id, -32602, `Unknown tool: ${tool}`);
  }
}
