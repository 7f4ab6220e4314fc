// The simulated nodes of the `fleet` bench, in a process of their own. They join by tokens that are made through the
// public API, as `holdfast sim` does it. What it is asked comes over a small HTTP port.

import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { joinAll, type SimNode } from "@holdfast/cli/commands/sim/join";
import { createClient } from "@holdfast/contracts/client";
import { createFleet } from "@holdfast/node-agent/sim/fleet";

/** `first`: the number of its first node, by which it is named. */
export type FleetNodes = { apiUrl: string; token: string; link: "stream" | "poll"; first: number };
/** Until there are so many. */
export type Grow = { agents: number };
export type NodesState = { agents: number; connected: number; problems: Record<string, number> };

const { apiUrl, token, link, first } = JSON.parse(process.env["BENCH_OURS"] ?? "") as FleetNodes;
const client = createClient({ baseUrl: apiUrl, token });
const fleet = createFleet({ link });
const nodes: SimNode[] = [];

async function grow({ agents }: Grow): Promise<NodesState> {
  const from = first + nodes.length;
  const last = first + agents - 1;
  const never = new AbortController().signal;
  nodes.push(
    ...(await joinAll({
      ...{ client, fleet, known: new Map(), from, agents: last, seed: 1, signal: never, onJoined() {} },
    })),
  );
  return state();
}

function state(): NodesState {
  const { agents, connected, problems } = fleet.status();
  return { agents, connected, problems };
}

/** Of those that are connected and have been heard since, from anywhere on. Looks at no more of them than it needs: it is asked all the time. */
function connectedIds(most: number, since: number): string[] {
  const ids: string[] = [];
  const from = Math.floor(Math.random() * nodes.length);
  for (let step = 0; step < nodes.length && ids.length < most; step += 1) {
    const agent = nodes[(from + step) % nodes.length]?.agent;
    if (agent?.connected() && (agent.lastHeartbeatAt() ?? 0) >= since) ids.push(agent.nodeId);
  }
  return ids;
}

const server = createServer(async (request, response) => {
  const { pathname, searchParams } = new URL(request.url ?? "/", "http://bench");
  try {
    const asked = (name: string) => Number(searchParams.get(name));
    const answer =
      pathname === "/grow"
        ? await grow({ agents: asked("agents") })
        : pathname === "/ids"
          ? connectedIds(asked("most"), asked("since"))
          : state();
    response.end(JSON.stringify(answer));
  } catch (error) {
    response.writeHead(500).end((error as Error).stack);
  }
});
// Ten thousand joins take longer than Node keeps a request by default.
server.requestTimeout = 0;
await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
const { port } = server.address() as AddressInfo;
process.stdout.write(`${JSON.stringify({ url: `http://127.0.0.1:${port}` })}\n`);
