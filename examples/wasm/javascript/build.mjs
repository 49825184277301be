// node build.mjs WIT: makes agent.wasm of agent.js. (componentize-js also needs preview2-shim, and does not say so.)

import { componentize } from "@bytecodealliance/componentize-js";
import { writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";

const { component } = await componentize({
  sourcePath: fileURLToPath(new URL("agent.js", import.meta.url)),
  witPath: process.argv[2],
  worldName: "agent",
  // Without this the component imports wasi:http, which a sandbox does not have.
  disableFeatures: ["http", "fetch-event"],
});
await writeFile(new URL("agent.wasm", import.meta.url), component);
