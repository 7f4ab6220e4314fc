// The progress of `holdfast sim`: one line that is overwritten on a terminal, a line now and then
// elsewhere, JSON lines for scripts.

import type { Fleet } from "@holdfast/node-agent/sim/fleet";
import { jsonText, span } from "../../output.ts";

const CLEAR_LINE = "\r\x1b[K";
const EVERY_MS = { terminal: 1_000, elsewhere: 10_000 };

export type Progress = { joined(): void; ready(): void; end(): void };

export function showProgress(options: { json?: boolean; agents: number }, fleet: Fleet): Progress {
  const { json = false, agents } = options;
  const onTerminal = process.stderr.isTTY && !json;
  const startedAt = performance.now();
  let joined = 0;
  let ready = false;

  const say = (text: string, { stays = false } = {}) => {
    process.stderr.write(`${onTerminal ? CLEAR_LINE : ""}${text}${onTerminal && !stays ? "" : "\n"}`);
  };
  const print = () => {
    const status = fleet.status();
    if (json) process.stdout.write(`${jsonText({ event: "status", ...status })}\n`);
    else say(ready ? describe(status) : `enrolled ${joined} of ${agents}, ${status.connected} connected`);
  };
  const timer = setInterval(print, onTerminal ? EVERY_MS.terminal : EVERY_MS.elsewhere);

  return {
    joined() {
      joined += 1;
    },
    ready() {
      ready = true;
      const seconds = (performance.now() - startedAt) / 1000;
      if (json) process.stdout.write(`${jsonText({ event: "joined", agents: joined, seconds })}\n`);
      else
        say(`${joined} simulated nodes enrolled in ${span(seconds * 1000)}. Ctrl-C stops them.`, {
          stays: true,
        });
    },
    end() {
      clearInterval(timer);
      if (onTerminal) process.stderr.write(CLEAR_LINE);
    },
  };
}

function describe({ agents, connected, away, problems, tasks }: ReturnType<Fleet["status"]>): string {
  const others = Object.entries(problems).map(([reason, count]) => `${count} ${reason}`);
  const nodes = [`${connected} of ${agents} connected`, `${away} disconnected`, ...others].join(", ");
  return `${nodes} · tasks: ${tasks.succeeded} completed, ${tasks.failed} failed`;
}
