// What stands between the parts of a terminal in the field: proxies, firewalls, other people's servers on
// our address. Each is a front whose address stays and whose behaviour a test changes.

import { once } from "node:events";
import { createServer as createHttpServer, type IncomingMessage, type ServerResponse } from "node:http";
import { request as askTls, createServer as createTlsServer, type RequestOptions } from "node:https";
import { type AddressInfo, createServer, connect as dial, type Server, type Socket } from "node:net";
import type { Duplex } from "node:stream";
import { LISTENER_HEADER } from "@holdfast/contracts/headers";
import { WebSocketServer } from "ws";

/** A port of this host, or of another one. */
export type Target = number | { host: string; port: number };
/** Where to pass everything on to; or nobody answers; or nobody takes the connection; or what follows the answer's head is lost. */
export type Way = Target | "silent" | "refused" | { headsOnlyFrom: number };

const placeOf = (target: Target) => (typeof target === "number" ? { host: "127.0.0.1", port: target } : target);

export type Front = { port: number; lead(way: Way): void; stop(): Promise<void> };

export async function openFront(): Promise<Front> {
  let way: Way = "refused";
  const sockets = new Set<Socket>();
  const keep = (socket: Socket) => {
    sockets.add(socket);
    socket.on("error", () => socket.destroy());
    socket.on("close", () => sockets.delete(socket));
  };
  const server = createServer((near) => {
    keep(near);
    if (way === "silent") return;
    if (way === "refused") return void near.destroy();
    const isWhole = typeof way === "number" || "port" in way;
    const far = dial(placeOf(typeof way === "object" && "headsOnlyFrom" in way ? way.headsOnlyFrom : way));
    keep(far);
    near.on("close", () => far.destroy());
    far.on("close", () => near.destroy());
    near.pipe(far);
    if (isWhole) far.pipe(near);
    else passHead(far, near);
  });
  return {
    port: await listening(server),
    // Nobody goes on by a way that is no more, such as a connection kept for the next request.
    lead: (next) => {
      if (next === way) return;
      way = next;
      for (const socket of sockets) socket.destroy();
    },
    async stop() {
      for (const socket of sockets) socket.destroy();
      await closed(server);
    },
  };
}

function passHead(from: Socket, to: Socket): void {
  let head = "";
  let passed = false;
  from.on("data", (bytes: Buffer) => {
    if (passed) return;
    head += bytes.toString("latin1");
    const end = head.indexOf("\r\n\r\n");
    if (end < 0) return;
    passed = true;
    to.write(head.slice(0, end + 4), "latin1");
  });
}

export type Standing = { port: number; stop(): Promise<void> };

function urlOf(target: Target): string {
  const { host, port } = placeOf(target);
  return `http://${host}:${port}`;
}

/** Another site: it has a page for nothing. */
export async function openOtherSite(): Promise<Standing> {
  const server = createHttpServer((_request, response) => response.writeHead(404).end("<h1>Not here</h1>"));
  return standing(server);
}

async function passPage(target: Target, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const answer = await fetch(`${urlOf(target)}${request.url}`).catch(() => undefined);
  for (const [name, value] of answer?.headers ?? [])
    if (/^(access-|x-)/.test(name)) response.setHeader(name, value);
  response.writeHead(answer?.status ?? 502).end(await answer?.text());
}

/** A proxy that knows no WebSockets. */
export async function openProxyWithoutUpgrades(target: () => Target): Promise<Standing> {
  const server = createHttpServer((request, response) => void passPage(target(), request, response));
  server.on("upgrade", (_request, socket) => refuseUpgrade(socket, "HTTP/1.1 400 Bad Request"));
  return standing(server);
}

/** A proxy that removes the subprotocol of WebSockets, which carries the token of a terminal. */
export async function openProxyWithoutTokens(target: () => Target): Promise<Standing> {
  const server = createHttpServer((request, response) => void passPage(target(), request, response));
  server.on("upgrade", (request, socket) =>
    passUpgrade(request, socket, { ...placeOf(target()), drops: "sec-websocket-protocol" }),
  );
  return standing(server);
}

/** An identity-aware proxy: who has its cookie gets through, everybody else is sent to sign in. */
export async function openIdentityProxy(cookie: string, target: () => Target): Promise<Standing> {
  const isKnown = ({ headers }: IncomingMessage) => headers.cookie?.split("; ").includes(cookie) === true;
  const location = "https://identity.example.com/.pomerium/sign_in";
  const server = createHttpServer(async (request, response) => {
    if (!isKnown(request)) return void response.writeHead(302, { location }).end("<html>Sign in</html>");
    const answer = await fetch(`${urlOf(target())}${request.url}`).catch(() => undefined);
    const listener = answer?.headers.get(LISTENER_HEADER);
    response.writeHead(answer?.status ?? 502, listener ? { [LISTENER_HEADER]: listener } : {});
    response.end(await answer?.text());
  });
  server.on("upgrade", (request, socket) => {
    socket.on("error", () => socket.destroy());
    if (!isKnown(request)) return refuseUpgrade(socket, `HTTP/1.1 302 Found\r\nlocation: ${location}`);
    passUpgrade(request, socket, placeOf(target()));
  });
  return standing(server);
}

/** `drops`: a header that is not passed on. */
function passUpgrade(
  request: IncomingMessage,
  socket: Duplex,
  { host, port, drops = "" }: { host: string; port: number; drops?: string },
): void {
  const far = dial({ host, port }, () => {
    const headers = request.rawHeaders.flatMap((name, index, all) =>
      index % 2 === 0 && name.toLowerCase() !== drops ? [`${name}: ${all[index + 1]}`] : [],
    );
    far.write(`GET ${request.url} HTTP/1.1\r\n${headers.join("\r\n")}\r\n\r\n`);
    far.pipe(socket).pipe(far);
  });
  far.on("error", () => socket.destroy());
  socket.on("error", () => socket.destroy());
  socket.on("close", () => far.destroy());
}

/** An edge that has had enough. */
export function openRateLimiter(): Promise<Standing> {
  return standing(createHttpServer((_request, response) => response.writeHead(429).end("<h1>Slow down</h1>")));
}

type Certificate = { cert: string; key: string };

/** A proxy on the nodes' side that ends TLS: the certificate of the node goes no further. */
export async function openTlsEnd(own: Certificate, target: () => number): Promise<Standing> {
  const onwardOf = (request: IncomingMessage): RequestOptions => ({
    ...own,
    port: target(),
    host: "127.0.0.1",
    path: request.url ?? "/",
    headers: request.headers,
    rejectUnauthorized: false,
  });
  const server = createTlsServer(own, (request, response) => {
    askTls(onwardOf(request))
      .on("response", (answer: IncomingMessage) => {
        response.writeHead(answer.statusCode ?? 502, answer.headers);
        answer.pipe(response);
      })
      .on("error", () => response.destroy())
      .end();
  });
  server.on("upgrade", (request, socket) => {
    socket.on("error", () => socket.destroy());
    askTls(onwardOf(request))
      .on("response", async (answer: IncomingMessage) => {
        const body = (await answer.toArray()).join("");
        const listener = `${LISTENER_HEADER}: ${answer.headers[LISTENER_HEADER]}`;
        refuseUpgrade(socket, `HTTP/1.1 ${answer.statusCode} Refused\r\n${listener}`, body);
      })
      .on("upgrade", (_answer, far: Duplex) => far.destroy(new Error("it was let in without its certificate")))
      .on("error", () => socket.destroy())
      .end();
  });
  return standing(server);
}

/** Takes every node's stream, and tells nobody. */
export async function openSink(own: Certificate): Promise<Standing> {
  const server = createTlsServer(own);
  const sockets = new WebSocketServer({ server });
  const { port, stop } = await standing(server);
  return {
    port,
    async stop() {
      for (const socket of sockets.clients) socket.terminate();
      await stop();
    },
  };
}

/** Somebody else's TLS server. */
export function openForeign(own: Certificate): Promise<Standing> {
  return standing(createTlsServer(own, (_request, response) => response.writeHead(404).end()));
}

function refuseUpgrade(socket: Duplex, line: string, body = ""): void {
  socket.on("error", () => undefined);
  socket.end(
    `${line}\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\nconnection: close\r\n\r\n${body}`,
  );
}

async function standing(server: Server & { closeAllConnections?(): void }): Promise<Standing> {
  return {
    port: await listening(server),
    async stop() {
      server.closeAllConnections?.();
      await closed(server);
    },
  };
}

async function listening(server: Server): Promise<number> {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return (server.address() as AddressInfo).port;
}

function closed(server: Server): Promise<void> {
  return new Promise((resolve) => server.close(() => resolve()));
}
