// What a run of `holdfast sim` tells on the way: one line that is written over on a terminal, a line now and then
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
  const tell = () => {
    const status = fleet.status();
    if (json) process.stdout.write(`${jsonText({ event: "status", ...status })}\n`);
    else say(ready ? describe(status) : `joined ${joined} of ${agents}, ${status.connected} connected`);
  };
  const timer = setInterval(tell, onTerminal ? EVERY_MS.terminal : EVERY_MS.elsewhere);

  return {
    joined() {
      joined += 1;
    },
    ready() {
      ready = true;
      const seconds = (performance.now() - startedAt) / 1000;
      if (json) process.stdout.write(`${jsonText({ event: "joined", agents: joined, seconds })}\n`);
      else
        say(`${joined} simulated nodes have joined in ${span(seconds * 1000)}. Ctrl-C ends them.`, {
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
  const nodes = [`${connected} of ${agents} connected`, `${away} away`, ...others].join(", ");
  return `${nodes} · tasks: ${tasks.succeeded} done, ${tasks.failed} failed`;
}
