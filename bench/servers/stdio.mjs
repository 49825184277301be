// Over stdio: whatever has come is answered with one write.

import { answer, updates } from './core.mjs';

const AT_ONCE = 256;
const drained = () => new Promise((resume) => process.stdout.once('drain', resume));

async function emit(count) {
  for (let from = 0; from < count; from += AT_ONCE) {
    const lines = updates(from, Math.min(count, from + AT_ONCE));
    if (!process.stdout.write(lines.join('\n') + '\n')) await drained();
  }
}

let rest = '';
process.stdin.setEncoding('utf8');
process.stdin.on('data', (chunk) => {
  const lines = (rest + chunk).split('\n');
  rest = lines.pop();
  let now = '';
  for (const line of lines) {
    if (!line) continue;
    const said = answer(JSON.parse(line), emit);
    if (typeof said === 'string') now += said + '\n';
    else said?.then((later) => process.stdout.write(later + '\n'));
  }
  if (now) process.stdout.write(now);
});
process.stdin.on('end', () => process.exit(0));
