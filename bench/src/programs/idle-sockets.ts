// Many sockets of agents that do nothing but say hello and ping, in one process: for the `idle` bench. With `pairing` each is an
// agent of its own, paired by the public API; without it they connect to whatever is there. Prints a line when each of them
// got an answer to a ping.

import { createClient } from "@holdfast/contracts/client";
import { createAgentPairingToken, pairAgent } from "@holdfast/contracts/endpoints/agents";
import WebSocket from "ws";

export type IdleSockets = {
  count: number;
  /** Undefined: of the pairing. */
  url?: string;
  pairing?: { apiUrl: string; operatorToken: string; orgId: string };
};

const AT_ONCE = 16;
const PING_MS = 15_000;
const options = JSON.parse(process.env["BENCH_OURS"] ?? "") as IdleSockets;
const capabilities = { kinds: ["connector.action" as const] };
const hello = JSON.stringify({
  ...{ type: "hello", agentVersion: "bench", name: "idle", capabilities, protocolVersion: 1, holding: [] },
});

async function place(): Promise<{ url: string; headers: Record<string, string> }> {
  const { pairing, url = "" } = options;
  if (!pairing) return { url, headers: {} };
  const call = createClient({ baseUrl: pairing.apiUrl, token: pairing.operatorToken });
  const { token: pairingToken } = await call(createAgentPairingToken, { params: { org_id: pairing.orgId } });
  const body = { pairingToken, name: "idle", agentVersion: "bench", capabilities };
  const { agentToken, gatewayWsUrl } = await call(pairAgent, { body });
  return { url: gatewayWsUrl, headers: { authorization: `Bearer ${agentToken}` } };
}

/** Resolves with the first pong. */
async function connect(): Promise<void> {
  const { url, headers } = await place();
  const socket = new WebSocket(url, { headers, perMessageDeflate: false });
  const ping = () => socket.send(JSON.stringify({ type: "ping", ts: Date.now() }));
  await new Promise<void>((resolve, reject) => {
    socket.once("error", reject);
    socket.once("close", (code) => reject(new Error(`closed with ${code}`)));
    socket.once("open", () => {
      socket.send(hello);
      ping();
      setInterval(ping, PING_MS);
    });
    socket.on("message", (data) => String(data).includes('"pong"') && resolve());
  });
}

let left = options.count;
const lane = async () => {
  while (left > 0) {
    left -= 1;
    await connect();
  }
};
await Promise.all(Array.from({ length: AT_ONCE }, lane));
process.stdout.write(`${JSON.stringify({ connected: options.count })}\n`);
