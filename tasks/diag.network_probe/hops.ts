// The hops to an endpoint, each with a time of its own: name, address, connection, TLS, the node's
// certificate. The server is only asked whether it accepts that, and only the code of its response is kept.

import { randomUUID, X509Certificate } from "node:crypto";
import { lookup } from "node:dns/promises";
import type { IncomingMessage } from "node:http";
import { connect as connectTcp, isIP, type Socket } from "node:net";
import { connect as connectTls, type DetailedPeerCertificate, type TLSSocket } from "node:tls";
import { LISTENER_HEADER } from "@holdfast/contracts/headers";
import { BOOT_HEADER, INSTANCE_HEADER, RECEIVED_SERIAL } from "@holdfast/contracts/node/limits";
import { type PageKind, pageKind } from "@holdfast/contracts/preflight/page-kind";
import type { ProbeCode } from "@holdfast/contracts/preflight/probe-codes";

// Not imported by name: that reads every property of the module, and one of them loads a second HTTP client, which
// would stay: 13 MB.
const { request } = process.getBuiltinModule("node:http");

export const HOP_MS = 5_000;
const MOST_ANSWER = 16 * 1024;

export class HopFailed extends Error {
  override name = "HopFailed";
  readonly code: ProbeCode;
  /** Of the error envelope of a Holdfast server. */
  readonly serverCode: string | undefined;

  constructor(code: ProbeCode, detail: string, serverCode?: string) {
    super(detail);
    this.code = code;
    this.serverCode = serverCode;
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

/** What is asked with the node's certificate. `withinMs`: for the response. */
export type Question = { path: string; listener: string | undefined; withinMs: number };

/**
 * Presents the node's certificate and asks a question with it. The handshake alone says nothing: with TLS 1.3 a
 * client is done before the server has judged, and our listeners judge every request, above TLS.
 */
export async function askWithCertificate(
  socket: Socket,
  { host, ca, timing, identity }: TlsOptions & { identity: string },
  question: Question,
): Promise<Response> {
  const tls = startTls(socket, host, { ca, cert: identity, key: identity, rejectUnauthorized: true });
  const deadline = AbortSignal.timeout(question.withinMs);
  try {
    const asked = ask(tls, { host, port: socket.remotePort ?? 0, path: question.path });
    const response = await untilAborted(asked, AbortSignal.any([timing.signal, deadline]));
    refuseOthers(response, serialOf(identity), question.listener);
    return response;
  } catch (error) {
    if (error instanceof HopFailed) throw error;
    timing.signal.throwIfAborted();
    if (deadline.aborted) throw new HopFailed("mtls_timeout", `no answer in ${question.withinMs} ms`);
    throw new HopFailed("mtls_refused", codeOf(error));
  } finally {
    tls.destroy();
  }
}

export type Response = {
  status: number;
  /** Undefined: not JSON. */
  body: Record<string, unknown> | undefined;
  /** Of our error envelope. */
  code: string | undefined;
  listener: string | undefined;
  page: PageKind;
};

/** Whatever does not come from the listener that was meant says nothing about this node's certificate. */
function refuseOthers(response: Response, serial: string | undefined, listener: string | undefined): void {
  const { status, code, body, page } = response;
  const said = `the server answered ${status} ${code ?? ""}`.trim();
  if (status === 429) throw new HopFailed("rate_limited", said, code);
  if (code === undefined && (status !== 200 || body === undefined)) {
    if (page === "rate_limit") throw new HopFailed("rate_limited", `HTTP ${status}, a page of a proxy`);
    if (page === "login") throw new HopFailed("login_page", `HTTP ${status}, a page to sign in`);
    if (page === "certificate") throw new HopFailed("mtls_refused", `HTTP ${status}, a page of a proxy`);
    throw new HopFailed("mtls_failed", `HTTP ${status}, not from a Holdfast server`);
  }
  if (code === "certificate_missing" || isOfAnother(body, serial))
    throw new HopFailed("edge_ends_tls", `${said}; it did not receive this node's certificate`, code);
  const misdirected = code === "route_not_found" || code === "host_refused";
  if (misdirected || (listener !== undefined && response.listener !== listener))
    throw new HopFailed("wrong_listener", `${said}; that is another listener of the installation`, code);
}

function isOfAnother(body: Record<string, unknown> | undefined, serial: string | undefined): boolean {
  const details = body?.["details"] as Record<string, unknown> | undefined;
  const received = details?.[RECEIVED_SERIAL];
  return received === null || (typeof received === "string" && serial !== undefined && received !== serial);
}

function ask(
  tls: TLSSocket,
  { host, port, path }: { host: string; port: number; path: string },
): Promise<Response> {
  return new Promise((resolve, reject) => {
    const asking = request({
      ...{ createConnection: () => tls, path },
      headers: {
        host: `${isIP(host) === 6 ? `[${host}]` : host}:${port}`,
        [INSTANCE_HEADER]: randomUUID(),
        [BOOT_HEADER]: "probe",
      },
    });
    asking.once("error", reject);
    asking.once("response", (answer) => {
      readBounded(answer).then((text) => resolve(understand(answer, text)), reject);
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

function understand({ statusCode: status = 0, headers }: IncomingMessage, text: string): Response {
  const body = objectIn(text);
  const code = body?.["code"];
  const listener = headers[LISTENER_HEADER];
  return {
    ...{ status, body },
    code: status >= 400 && typeof code === "string" && /^[a-z_]{1,64}$/.test(code) ? code : undefined,
    listener: typeof listener === "string" ? listener : undefined,
    page: pageKind({ status, text, location: headers.location }),
  };
}

function objectIn(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : undefined;
  } catch {
    return undefined;
  }
}

function serialOf(identity: string): string | undefined {
  try {
    return new X509Certificate(identity).serialNumber.toLowerCase();
  } catch {
    return undefined;
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
