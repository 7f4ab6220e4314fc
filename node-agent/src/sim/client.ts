// The calls of a simulated agent, over connections of its own: a stream, or requests that take as little memory as possible.
// Idle it has one connection, like a real agent.

import type { LookupFunction } from "node:net";
import type { SecureContext } from "node:tls";
import { BOOT_HEADER, INSTANCE_HEADER } from "@holdfast/contracts/node/limits";
import { STREAM_PATH } from "@holdfast/contracts/node/stream";
import { type LinkCalls, linkCalls, pollBy, type Request } from "../link/calls.ts";
import { type Credentials, type LinkKind, type LinkTarget, secureContextOf } from "../link/client.ts";
import { type Answer, readAnswer } from "../link/exchange.ts";
import { failureOf, LinkFailure } from "../link/failures.ts";
import { dial } from "../link/stream/dial.ts";
import { createTransport, type Transport } from "../link/stream/transport.ts";
import { type Connection, openConnection } from "./connection.ts";
import type { Dialling } from "./dialling.ts";

export type SimClient = LinkCalls & {
  /** From the next connection on. */
  use(target: LinkTarget): void;
  /** Aborts requests in progress; the next request opens a connection again. */
  hangUp(): void;
};

const UNUSED_CONNECTION_MS = 5_000;

export type SimClientOptions = LinkTarget & {
  lookup: LookupFunction;
  nodeId: string;
  instanceId: string;
  bootId: string;
  myTurn: Dialling;
  link: LinkKind;
};

/**
 * A session belongs to the certificate that it began with. The one of a connection that was begun before `use` may arrive
 * after it, and must not be resumed with the next identity: the server would see the replaced certificate.
 */
type Target = {
  url: URL;
  credentials: Credentials;
  /** Created with the first connection: parsing a key and its chain costs more than anything else here. */
  secureContext: SecureContext | undefined;
  session: Buffer | undefined;
};

type Destination = Pick<Target, "url" | "session"> & {
  secureContext: SecureContext;
  onSession(session: Buffer): void;
};

const targetOf = ({ apiUrl, credentials }: LinkTarget): Target => ({
  ...{ url: new URL(apiUrl), credentials, secureContext: undefined, session: undefined },
});

export function createSimClient(options: SimClientOptions): SimClient {
  const { lookup, nodeId, instanceId, bootId } = options;
  const headFor = ({ host }: URL) =>
    ` HTTP/1.1\r\nhost: ${host}\r\naccept: application/json\r\n` +
    `${INSTANCE_HEADER}: ${instanceId}\r\n${BOOT_HEADER}: ${bootId}\r\n`;
  let target = targetOf(options);
  let free: Connection | undefined;
  let unused: NodeJS.Timeout | undefined;
  const open = new Set<Connection>();
  let hangUps = 0;
  /** Of an identity that was replaced: closed when they are free. */
  let retired = new WeakSet<Connection>();

  const takeFree = (): Connection | undefined => {
    clearTimeout(unused);
    const taken = free;
    free = undefined;
    return taken;
  };
  /** Connects when it is this agent's turn, with what is in force then. */
  const inTurn = <T>(connect: (to: Destination) => Promise<T>): Promise<T> => {
    const hungUpBefore = hangUps;
    return options.myTurn(async () => {
      if (hangUps !== hungUpBefore)
        throw Object.assign(new Error("the request was aborted"), { code: "ABORT_ERR" });
      const used = target;
      used.secureContext ??= secureContextOf(used.credentials);
      const onSession = (fresh: Buffer) => {
        used.session = fresh;
      };
      return connect({ url: used.url, secureContext: used.secureContext, session: used.session, onSession });
    });
  };
  const connection = (): Promise<Connection> =>
    inTurn(async ({ url, ...secured }) => {
      const opened: Connection = openConnection({
        ...{ place: { host: url.hostname, port: Number(url.port || 443), lookup }, ...secured },
        onClosed: () => {
          open.delete(opened);
          if (free === opened) free = undefined;
        },
      });
      open.add(opened);
      return opened;
    });

  const release = (used: Connection) => {
    if (!open.has(used)) return;
    if (free || retired.has(used)) return used.close();
    free = used;
    unused = setTimeout(() => used.close(), UNUSED_CONNECTION_MS);
  };

  const send = async <T>({ method, path, body, timeoutMs, signal }: Request): Promise<Answer<T>> => {
    const sentAt = Date.now();
    const content = body === undefined ? "" : JSON.stringify(body);
    const about =
      body === undefined
        ? ""
        : `content-type: application/json\r\ncontent-length: ${Buffer.byteLength(content)}\r\n`;
    const text = `${method} /internal/v1/nodes/${nodeId}${path}${headFor(target.url)}${about}\r\n${content}`;
    try {
      const used = takeFree() ?? (await connection());
      const answer = await used.exchange({ text, timeoutMs, ...(signal ? { signal } : {}) });
      if (answer.headers.connection === "close") used.close();
      else release(used);
      return readAnswer<T>(answer, { sentAt, receivedAt: Date.now() });
    } catch (error) {
      throw error instanceof LinkFailure ? error : new LinkFailure(failureOf(error));
    }
  };

  const dialStream = () =>
    inTurn(({ url, ...secured }) =>
      dial({
        ...{ ...secured, lookup, url: new URL(`/internal/v1/nodes/${nodeId}${STREAM_PATH}`, url) },
        headers: { [INSTANCE_HEADER]: instanceId, [BOOT_HEADER]: bootId },
      }),
    );
  const http = { send, wait: pollBy(send) };
  const newTransport = (): Transport => createTransport({ http, dial: dialStream });
  /** Replaced when the agent hangs up: it may come back. */
  let transport = options.link === "poll" ? undefined : newTransport();

  return {
    ...linkCalls({
      send: (request) => (transport ?? http).send(request),
      wait: (query) => (transport ?? http).wait(query),
    }),
    use(next) {
      target = targetOf(next);
      retired = new WeakSet(open);
      free?.close();
      transport?.renew();
    },
    hangUp() {
      hangUps += 1;
      clearTimeout(unused);
      for (const one of [...open]) one.close();
      transport?.close();
      if (transport) transport = newTransport();
    },
  };
}
