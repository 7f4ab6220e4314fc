// The agent's requests to the node-facing API over mutual TLS. An idle agent owns one connection; a
// second exists only while results or progress travel beside a held poll. A renewed identity is used
// by the next connections, and requests on the old one are never cut.

import https from "node:https";
import type { LookupFunction } from "node:net";
import { createSecureContext, type SecureContext } from "node:tls";
import { BOOT_HEADER, INSTANCE_HEADER } from "@holdfast/contracts/node/limits";
import { checkApiIdentity } from "./api-identity.ts";
import { type LinkCalls, linkCalls } from "./calls.ts";
import { exchange } from "./exchange.ts";

/** What TLS needs of the node's identity. */
export type Credentials = { keyPem: string; chainPem: string; roots: readonly string[] };

/** The server's address, and the identity to present. */
export type LinkTarget = { apiUrl: string; credentials: Credentials };

export type LinkClient = LinkCalls & {
  /** From the next connection on. */
  use(target: LinkTarget): void;
  close(): void;
};

export type LinkClientOptions = LinkTarget & {
  nodeId: string;
  instanceId: string;
  bootId: string;
  /** Finds the addresses of the API's host name. */
  lookup: LookupFunction;
};

/** How long a connection without a request stays open: the second one is closed soon after it was needed. */
const UNUSED_CONNECTION_MS = 5_000;

type Pool = { agent: https.Agent; base: string; inFlight: number; retired: boolean };

export function createLinkClient(options: LinkClientOptions): LinkClient {
  const { nodeId, instanceId, bootId, lookup } = options;
  const headers = { [INSTANCE_HEADER]: instanceId, [BOOT_HEADER]: bootId };
  const openPool = ({ apiUrl, credentials }: LinkTarget): Pool => ({
    agent: openAgent(credentials, lookup),
    base: `${apiUrl}/internal/v1/nodes/${nodeId}`,
    inFlight: 0,
    retired: false,
  });
  let pool = openPool(options);

  const calls = linkCalls(async ({ path, ...request }) => {
    const used = pool;
    used.inFlight += 1;
    try {
      return await exchange({ ...request, url: new URL(used.base + path), headers, via: { agent: used.agent } });
    } finally {
      used.inFlight -= 1;
      closeWhenUnused(used);
    }
  });

  return {
    ...calls,
    use(target) {
      pool.retired = true;
      closeWhenUnused(pool);
      pool = openPool(target);
    },
    close() {
      pool.agent.destroy();
    },
  };
}

/** The TLS options that real and simulated agents share. */
export function secureContextOf({ keyPem, chainPem, roots }: Credentials): SecureContext {
  return createSecureContext({ key: keyPem, cert: chainPem, ca: [...roots], minVersion: "TLSv1.2" });
}

function openAgent(credentials: Credentials, lookup: LookupFunction): https.Agent {
  const agent = new https.Agent({
    keepAlive: true,
    lookup,
    // Both may be free for a moment, between an answered poll and the next: with room for one, the other
    // would be closed, and every task would pay for a handshake.
    maxFreeSockets: 2,
    // The least recently used one is left to close.
    scheduling: "lifo",
    timeout: UNUSED_CONNECTION_MS,
    // Kept here instead: the pool forgets a session when a connection fails, which is when all agents come back at
    // once and the server can least afford whole handshakes.
    maxCachedSessions: 0,
    checkServerIdentity: checkApiIdentity,
    secureContext: secureContextOf(credentials),
  });
  const connect = agent.createConnection.bind(agent);
  let session: Buffer | undefined;
  agent.createConnection = (options, onCreated) => {
    const resuming: typeof options & { session?: Buffer } = session ? { ...options, session } : options;
    const socket = connect(resuming, onCreated);
    socket?.on("session", (fresh: Buffer) => {
      session = fresh;
    });
    return socket;
  };
  return agent;
}

function closeWhenUnused(pool: Pool): void {
  if (pool.retired && pool.inFlight === 0) pool.agent.destroy();
}
