// lapse-process <clock file> <from> <seconds> <agent's port> <server's port> [until-connected]: time passes for a whole lab, a second
// at a time, on the host of an agent whose steady clock follows it, too. The agent has its turn after every second, and none passes
// while it has a request under way: a lapse must not look like a server that does not respond. Nor must the server look as if it had
// stopped: every few seconds the parent is notified, and replies when the server has had its turn.

import { once } from "node:events";
import { readFileSync, renameSync, writeFileSync } from "node:fs";

const [file = "", from = "", seconds = "", agentPort = "", serverPort = "", until] = process.argv.slice(2);
const remote = `:${Number(serverPort).toString(16).toUpperCase().padStart(4, "0")}`;
/** As in /proc/net/tcp: established, and SYN sent. */
const underWay = new Set(["01", "02"]);
const DNS = ":0035";
const PAUSE_MS = 2;
/** Half the time after which a silent api counts as stopped. */
const SERVER_SECONDS = 10;

let passed = 0;
while (passed < Number(seconds) && !(until !== undefined && (await isConnected()))) {
  passed += 1;
  // In one step: a process that found the file empty would see the machine's own time.
  writeFileSync(`${file}.next`, `+${Number(from) + passed}\n`, { mode: 0o644 });
  renameSync(`${file}.next`, file);
  await isConnected();
  while (hasRequest() && !(until !== undefined && (await isConnected()))) {
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
  }
  if (passed % SERVER_SECONDS === 0) await serverHadItsTurn();
}
report({ ended: passed });

function report(line: object): void {
  process.stdout.write(`${JSON.stringify(line)}\n`);
}

function serverHadItsTurn(): Promise<unknown> {
  const had = once(process, "message");
  report({ passed });
  return had;
}

/** Wakes the agent, whose timers are due. */
async function isConnected(): Promise<boolean> {
  const answer = await fetch(`http://127.0.0.1:${agentPort}/healthz`);
  return ((await answer.json()) as { connected: boolean }).connected;
}

/** Also while it asks for the server's address: that is part of how long its request takes. */
function hasRequest(): boolean {
  return isConnecting("tcp", remote) || isConnecting("udp", DNS);
}

function isConnecting(protocol: "tcp" | "udp", port: string): boolean {
  return readFileSync(`/proc/self/net/${protocol}`, "utf8")
    .split("\n")
    .some((line) => {
      const [, , to = "", state = ""] = line.trim().split(/\s+/);
      return to.endsWith(port) && underWay.has(state);
    });
}
