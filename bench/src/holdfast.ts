// Holdfast as a contestant: a complete installation, started as a person starts it, on free ports and a data directory of
// the bench's own.

import { join } from "node:path";
import type { Client } from "@holdfast/contracts/client";
import { listNodes } from "@holdfast/contracts/endpoints/nodes";
import type { Lab } from "./lab.ts";
import { freePort } from "./ports.ts";
import { type RunningProgram, root } from "./program.ts";

export type RunningHoldfast = {
  apiUrl: string;
  /** From spawn to the line that says it is ready. */
  seconds: number;
  /** The steps it printed on the way, in seconds. */
  steps: Record<string, number>;
  stop: RunningProgram["stop"];
};

const entries = {
  holdfast: { command: process.execPath, args: [join(root, "cli/bin/holdfast.mjs"), "up", "--json"] },
  npm: { command: "npm", args: ["start", "--", "--json"] },
};

export async function startHoldfast(
  lab: Lab,
  options: {
    dataDirectory: string;
    through?: keyof typeof entries;
    compileCache?: string;
    settings?: Record<string, string>;
  },
): Promise<RunningHoldfast> {
  const { dataDirectory, through = "holdfast", compileCache, settings } = options;
  // Not 0: with a port that is known before, api and gateway start side by side, as they do for people.
  const internalPort = await freePort();
  const started = performance.now();
  const program = lab.start({
    ...entries[through],
    cwd: root,
    env: {
      HOLDFAST_DATA_DIR: dataDirectory,
      HOLDFAST_API_PORT: "0",
      HOLDFAST_GATEWAY_PORT: "0",
      HOLDFAST_NODE_API_PORT: "0",
      HOLDFAST_NODE_TERMINAL_PORT: "0",
      HOLDFAST_GATEWAY_INTERNAL_PORT: "0",
      HOLDFAST_API_INTERNAL_PORT: String(internalPort),
      HOLDFAST_AGENT_PORT: "0",
      ...(compileCache && { NODE_COMPILE_CACHE: compileCache }),
      ...settings,
    },
  });
  const ready = (await program.ready) as { api_url: string };
  const seconds = (performance.now() - started) / 1000;
  return { apiUrl: ready.api_url, seconds, steps: stepsIn(program.said()), stop: program.stop };
}

/** The node that `up` made of this machine, or the one of this name, once it takes work. */
export async function firstOnline(call: Client, name?: string): Promise<string> {
  for (;;) {
    const { items } = await call(listNodes, {});
    const online = items.find(
      (node) =>
        node.connection === "online" && node.status === "active" && (name === undefined || node.name === name),
    );
    if (online) return online.id;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

/** Lines such as `✓ Schema is current 120 ms`. */
export function stepsIn(progress: string): Record<string, number> {
  const lines = progress.matchAll(/^✓ (.+) ([\d.]+) (ms|s)$/gm);
  return Object.fromEntries(
    [...lines].map(([, label, time, unit]) => [label, Number(time) / (unit === "ms" ? 1000 : 1)]),
  );
}
