// The agent's connections to the node-facing API over mutual TLS. An idle agent owns one: a stream, or a held poll, beside
// which a second exists only while results or progress are sent. A renewed identity is used by the next connections, and
// calls on the old one are never cut.

import { X509Certificate } from "node:crypto";
import https from "node:https";
import type { LookupFunction } from "node:net";
import { createSecureContext, type SecureContext } from "node:tls";
import { BOOT_HEADER, INSTANCE_HEADER } from "@holdfast/contracts/node/limits";
import { STREAM_PATH } from "@holdfast/contracts/node/stream";
import { checkApiIdentity } from "./api-identity.ts";
import { type LinkCalls, linkCalls, pollBy, type SendRequest } from "./calls.ts";
import { exchange } from "./exchange.ts";
import { dial } from "./stream/dial.ts";
import { createTransport, type Transport } from "./stream/transport.ts";
import { type LinkTimes, usualTimes } from "./times.ts";

/** What TLS needs of the node's identity. */
export type Credentials = { keyPem: string; chainPem: string; roots: readonly string[] };

/** The server's address, and the identity to present. */
export type LinkTarget = { apiUrl: string; credentials: Credentials };

export type LinkClient = LinkCalls & {
  /** From the next connection on. */
  use(target: LinkTarget): void;
  /** How it is connected; undefined before the first call. */
  used: Transport["used"];
  close(): void;
};

export type LinkClientOptions = LinkTarget & {
  nodeId: string;
  instanceId: string;
  bootId: string;
  /** Finds the addresses of the API's host name. */
  lookup: LookupFunction;
  /** `poll`: never opens a stream. */
  link: LinkKind;
  times?: Partial<LinkTimes> | undefined;
};

export type LinkKind = "stream" | "poll";

/** How long a connection without a request stays open: the second one is closed soon after it was needed. */
const UNUSED_CONNECTION_MS = 5_000;

type Pool = {
  agent: https.Agent;
  secureContext: SecureContext;
  /** The serial of its certificate. Read only to be compared with one that the server refused. */
  presented(): string;
  base: string;
  inFlight: number;
  retired: boolean;
  /** Of the last stream, to be resumed. */
  session: Buffer | undefined;
};

export function createLinkClient(options: LinkClientOptions): LinkClient {
  const { nodeId, instanceId, bootId, lookup } = options;
  const headers = { [INSTANCE_HEADER]: instanceId, [BOOT_HEADER]: bootId };
  const openPool = ({ apiUrl, credentials }: LinkTarget): Pool => {
    const secureContext = secureContextOf(credentials);
    return {
      ...{ agent: openAgent(secureContext, lookup), secureContext, session: undefined },
      presented: () => new X509Certificate(credentials.chainPem).serialNumber.toLowerCase(),
      ...{ base: `${apiUrl}/internal/v1/nodes/${nodeId}`, inFlight: 0, retired: false },
    };
  };
  let pool = openPool(options);

  const send: SendRequest = async ({ path, ...request }) => {
    const used = pool;
    used.inFlight += 1;
    try {
      const { agent, presented } = used;
      return await exchange({ ...request, url: new URL(used.base + path), headers, via: { agent }, presented });
    } finally {
      used.inFlight -= 1;
      closeWhenUnused(used);
    }
  };
  const times = { ...usualTimes, ...options.times };
  const transport = createTransport({
    ...{ http: { send, wait: pollBy(send) }, times },
    dial: options.link === "poll" ? undefined : () => dialFrom(pool),
  });
  const dialFrom = (used: Pool) =>
    dial({
      ...{ url: new URL(used.base + STREAM_PATH), headers, lookup },
      ...{ secureContext: used.secureContext, session: used.session, presented: used.presented },
      onSession: (session) => {
        used.session = session;
      },
    });

  return {
    ...linkCalls(transport, times),
    use(target) {
      pool.retired = true;
      closeWhenUnused(pool);
      pool = openPool(target);
      transport.renew();
    },
    used: transport.used,
    close() {
      transport.close();
      pool.agent.destroy();
    },
  };
}

/** The TLS options that real and simulated agents share. */
export function secureContextOf({ keyPem, chainPem, roots }: Credentials): SecureContext {
  return createSecureContext({ key: keyPem, cert: chainPem, ca: [...roots], minVersion: "TLSv1.2" });
}

function openAgent(secureContext: SecureContext, lookup: LookupFunction): https.Agent {
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
    secureContext,
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
