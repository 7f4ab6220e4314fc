// Agents of another build: our sources with one thing changed.

import { execFile } from "node:child_process";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import type { LabNode } from "../lab/node.ts";
import type { Fault } from "./fault.ts";

const execute = promisify(execFile);
const copying = fileURLToPath(new URL("./build-process.ts", import.meta.url));

type Build = { root: string; command: string };

/** A type of task that a build may lack. */
export const PROBE = "diag.network_probe";

/** Heartbeats have a field of another form: one that a server does not know would be accepted. */
export function heartbeatOfAnotherVersion(root: string): void {
  const file = join(root, "node-agent/src/core/heartbeat.ts");
  const source = readFileSync(file, "utf8");
  const changed = source.replace("running: known.running,", "running: { tasks: known.running },");
  if (changed === source) throw new Error(`${file} is not as this scenario knows it`);
  writeFileSync(file, changed);
}

export function withoutNetworkProbe(root: string): void {
  rmSync(join(root, "tasks", PROBE), { recursive: true });
}

/** From before the oldest version that the server supports. */
export function ofAnOldVersion(root: string): void {
  const file = join(root, "node-agent/package.json");
  const content = JSON.parse(readFileSync(file, "utf8")) as Record<string, unknown>;
  writeFileSync(file, JSON.stringify({ ...content, version: "0.0.9" }));
}

/** `prepare` makes the build, which takes seconds and breaks nothing yet. */
export function anotherBuild(node: LabNode, change: (root: string) => void): Fault & { prepare(): Promise<void> } {
  let copy: Build | undefined;
  const make = async () => {
    const { stdout } = await execute(process.execPath, [copying]);
    const made = JSON.parse(stdout) as Build;
    change(made.root);
    return made;
  };
  return {
    what: "the agent is of another version",
    async prepare() {
      copy ??= await make();
    },
    async inject() {
      copy ??= await make();
      await node.stopAgent();
      node.startAgent({ command: copy.command });
    },
    async repair() {
      await node.agent().stop();
      if (copy) await rm(copy.root, { recursive: true, force: true });
      node.startAgent();
    },
  };
}
