// The hops to an endpoint, each with a time of its own: name, address, connection, TLS, the node's
// certificate. The server is only asked whether it accepts that, and only the code of its response is kept.

import { randomUUID } from "node:crypto";
import { lookup } from "node:dns/promises";
import type { IncomingMessage } from "node:http";
import { connect as connectTcp, isIP, type Socket } from "node:net";
import { connect as connectTls, type DetailedPeerCertificate, type TLSSocket } from "node:tls";
import { BOOT_HEADER, IDENTITY_PATH, INSTANCE_HEADER } from "@holdfast/contracts/node/limits";

// Not imported by name: that reads every property of the module, and one of them loads a second HTTP client, which
// would stay: 13 MB.
const { request } = process.getBuiltinModule("node:http");

export const HOP_MS = 5_000;
const MOST_ANSWER = 16 * 1024;

export type Code =
  | ("endpoint_invalid" | "dns_failed" | "dns_timeout" | "address_refused")
  | ("tcp_refused" | "tcp_timeout" | "tcp_unreachable" | "tcp_failed")
  | ("tls_untrusted" | "tls_timeout" | "tls_failed" | "trust_bundle_missing")
  | ("mtls_refused" | "mtls_failed" | "mtls_timeout" | "identity_missing");

export class HopFailed extends Error {
  override name = "HopFailed";
  readonly code: Code;

  constructor(code: Code, detail: string) {
    super(detail);
    this.code = code;
  }
}

export type Timing = { signal: AbortSignal; hopMs: number };

export async function resolveHost(host: string, timing: Timing): Promise<string[]> {
  if (isIP(host)) return [host];
  const deadline = AbortSignal.timeout(timing.hopMs);
  const found = await untilAborted(lookup(host, { all: true }), AbortSignal.any([timing.signal, deadline])).catch(
    (error: unknown) => {
      timing.signal.throwIfAborted();
      if (deadline.aborted) throw new HopFailed("dns_timeout", `no answer for ${host} in ${timing.hopMs} ms`);
      throw new HopFailed("dns_failed", codeOf(error));
    },
  );
  return found.map(({ address }) => address);
}

/** To exactly this address: nothing is resolved again. */
export async function openTcp(address: string, port: number, timing: Timing): Promise<Socket> {
  const socket = connectTcp({ host: address, port });
  const error = await settled(socket, "connect", timing);
  if (error === undefined) return socket;
  socket.destroy();
  if (error === "timeout") throw new HopFailed("tcp_timeout", `${address} did not answer in ${timing.hopMs} ms`);
  const code = codeOf(error);
  if (code === "ECONNREFUSED") throw new HopFailed("tcp_refused", `${address} port ${port}`);
  if (code === "EHOSTUNREACH" || code === "ENETUNREACH")
    throw new HopFailed("tcp_unreachable", `${address}: ${code}`);
  throw new HopFailed("tcp_failed", `${address}: ${code}`);
}

export type Handshake = {
  /** Why the certificate is not trusted for this host. */
  untrusted: string | undefined;
  certificate: DetailedPeerCertificate;
  protocol: string | null;
};

export type TlsOptions = { host: string; ca: string[]; timing: Timing };

/** The socket is closed when it returns. */
export async function shakeHands(socket: Socket, { host, ca, timing }: TlsOptions): Promise<Handshake> {
  const tls = startTls(socket, host, { ca });
  try {
    const error = await settled(tls, "secureConnect", timing);
    if (error === "timeout") throw new HopFailed("tls_timeout", `no handshake in ${timing.hopMs} ms`);
    if (error !== undefined) throw new HopFailed("tls_failed", codeOf(error));
    return {
      // Typed as an error, but set to its code.
      untrusted: tls.authorized ? undefined : String(tls.authorizationError),
      certificate: tls.getPeerCertificate(true),
      protocol: tls.getProtocol(),
    };
  } finally {
    tls.destroy();
  }
}

/**
 * Presents the node's certificate and asks whether it is accepted. The handshake alone says nothing: with TLS 1.3 a
 * client is done before the server has judged, and our listeners judge every request, above TLS.
 */
export async function presentCertificate(
  socket: Socket,
  { host, ca, timing, identity, nodeId }: TlsOptions & { identity: string; nodeId: string },
): Promise<void> {
  const tls = startTls(socket, host, { ca, cert: identity, key: identity, rejectUnauthorized: true });
  const deadline = AbortSignal.timeout(timing.hopMs);
  try {
    const asked = askForIdentity(tls, { host, port: socket.remotePort ?? 0, nodeId });
    const { status, code, acceptedId } = await untilAborted(asked, AbortSignal.any([timing.signal, deadline]));
    if (acceptedId === nodeId) return;
    const refused = status === 401 || status === 403;
    throw new HopFailed(
      refused ? "mtls_refused" : "mtls_failed",
      `the server answered ${status} ${code ?? ""}`.trim(),
    );
  } catch (error) {
    if (error instanceof HopFailed) throw error;
    timing.signal.throwIfAborted();
    if (deadline.aborted) throw new HopFailed("mtls_timeout", `no answer in ${timing.hopMs} ms`);
    throw new HopFailed("mtls_refused", codeOf(error));
  } finally {
    tls.destroy();
  }
}

type Verdict = { status: number; code: string | undefined; acceptedId: string | undefined };

function askForIdentity(
  tls: TLSSocket,
  { host, port, nodeId }: { host: string; port: number; nodeId: string },
): Promise<Verdict> {
  return new Promise((resolve, reject) => {
    const asking = request({
      createConnection: () => tls,
      path: IDENTITY_PATH.replace("{node_id}", nodeId),
      headers: {
        host: `${isIP(host) === 6 ? `[${host}]` : host}:${port}`,
        [INSTANCE_HEADER]: randomUUID(),
        [BOOT_HEADER]: "probe",
      },
    });
    asking.once("error", reject);
    asking.once("response", (answer) => {
      readBounded(answer).then((text) => resolve(verdictOf(answer.statusCode ?? 0, text)), reject);
    });
    asking.end();
  });
}

async function readBounded(answer: IncomingMessage): Promise<string> {
  let text = "";
  for await (const part of answer.setEncoding("utf8")) {
    text += part;
    if (text.length > MOST_ANSWER) break;
  }
  return text;
}

function verdictOf(status: number, text: string): Verdict {
  try {
    const { code, node_id } = JSON.parse(text) as Record<string, unknown>;
    return {
      status,
      code: typeof code === "string" && /^[a-z_]{1,64}$/.test(code) ? code : undefined,
      acceptedId: status === 200 && typeof node_id === "string" ? node_id : undefined,
    };
  } catch {
    return { status, code: undefined, acceptedId: undefined };
  }
}

type Credentials = { ca: string[]; cert?: string; key?: string; rejectUnauthorized?: boolean };

function startTls(socket: Socket, host: string, credentials: Credentials): TLSSocket {
  const name = isIP(host) ? { host } : { host, servername: host };
  try {
    return connectTls({ socket, rejectUnauthorized: false, ...name, ...credentials });
  } catch (error) {
    socket.destroy();
    throw new HopFailed(
      "identity_missing",
      `identity.pem does not hold a key and its certificate: ${codeOf(error)}`,
    );
  }
}

/** Nothing when the event came; otherwise why not. Cancellation is thrown. */
async function settled(
  socket: Socket,
  event: string,
  { signal, hopMs }: Timing,
): Promise<Error | "timeout" | undefined> {
  const deadline = AbortSignal.timeout(hopMs);
  const outcome = new Promise<Error | undefined>((resolve) => {
    socket.once(event, () => resolve(undefined));
    socket.on("error", resolve);
    socket.once("close", () => resolve(Object.assign(new Error("closed"), { code: "ECONNRESET" })));
  });
  try {
    return await untilAborted(outcome, AbortSignal.any([signal, deadline]));
  } catch {
    if (!signal.aborted) return "timeout";
    socket.destroy();
    throw signal.reason;
  }
}

function untilAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const stop = () => reject(signal.reason);
    if (signal.aborted) return stop();
    signal.addEventListener("abort", stop, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener("abort", stop));
  });
}

/** The code of an error rather than its message, which may hold more than is ours to pass on. */
function codeOf(error: unknown): string {
  const code = error instanceof Error ? (error as NodeJS.ErrnoException).code : undefined;
  return code ?? "failed without saying why";
}
