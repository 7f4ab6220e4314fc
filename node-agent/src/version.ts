// The version of this agent, as its package states it. The shipped bundle has it built in.

import { readFileSync } from "node:fs";

export const agentVersion: string = (
  JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8")) as { version: string }
).version;
