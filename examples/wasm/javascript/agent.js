// Follows a note, adds to it by a queued call, and tells what it says then.

import { log, recv } from "toolpost:agent/host@0.1.0";
import { get } from "toolpost:agent/tooling@0.1.0";

const NOTES = "notes://all";

export function run() {
  const journal = get("journal");
  const notes = journal.subscribeResource(NOTES);
  const call = journal.callTool("add_note", JSON.stringify({ text: "a guest in JavaScript was here" }));
  const seen = new Set();
  let last = "";
  while (!(seen.has(notes) && seen.has(call))) {
    const { id, event } = recv(10);
    seen.add(id);
    switch (event.tag) {
      case "tool-result":
        log(`${event.val.name}: ${event.val.value}`, "info");
        break;
      case "resource-updated":
        last = event.val.content.trimEnd().split("\n").at(-1);
        break;
      default:
        // A thrown string is the error of `run`; anything else would be a trap.
        throw `unexpected: ${event.tag} ${JSON.stringify(event.val)}`;
    }
  }
  return `the last note says ${JSON.stringify(last)}`;
}
