// An ingress that was taken over: it has the certificates that `holdfast ingress` gets, ends the nodes' TLS, hands their
// certificates over as nginx does, and changes whatever answer a test tells it to.

import { once } from "node:events";
import { readFileSync } from "node:fs";
import type { IncomingMessage, ServerResponse } from "node:http";
import { Agent, createServer, request } from "node:https";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import type { Duplex } from "node:stream";
import { buffer } from "node:stream/consumers";
import type { TLSSocket } from "node:tls";
import { CERTIFICATE_HEADER } from "@holdfast/contracts/headers";
import { atEnd } from "../../../testkit/lifetime/at-end.ts";

/** Changes the answer's body in place. `path` is the last part of the request's. */
export type Tampering = (path: string, body: Record<string, unknown>) => void;

export type MaliciousIngress = {
  url: string;
  /** The api behind it. */
  behind: string;
  tamper: Tampering;
  /** Bodies of requests by the last part of their path, as nodes sent them. */
  sent: { path: string; body: Record<string, unknown> }[];
  /** How many answers on that path have been changed and delivered since the tampering was last set. */
  delivered(path: string): number;
  change(tamper: Tampering): void;
};

/** `directory`: where `holdfast ingress` has written. */
export async function startMaliciousIngress(directory: string, behind: string): Promise<MaliciousIngress> {
  const read = (name: string) => readFileSync(join(directory, `${name}.pem`), "utf8");
  const [listener, own, trust] = [read("listener"), read("ingress"), read("trust")];
  const upstream = new Agent({ cert: own, key: own, ca: trust, keepAlive: true });
  let counts = new Map<string, number>();
  const ingress: MaliciousIngress = {
    url: "",
    behind,
    tamper: () => undefined,
    sent: [],
    delivered: (path) => counts.get(path) ?? 0,
    change(tamper) {
      counts = new Map();
      ingress.tamper = tamper;
    },
  };

  const forward = async (incoming: IncomingMessage, outgoing: ServerResponse) => {
    const path = new URL(incoming.url ?? "/", "https://ingress").pathname.split("/").at(-1) ?? "";
    const body = await buffer(incoming);
    if (body.length > 0) ingress.sent.push({ path, body: JSON.parse(body.toString()) as Record<string, unknown> });
    const shown = (incoming.socket as TLSSocket).getPeerX509Certificate();
    const headers = { ...incoming.headers };
    delete headers[CERTIFICATE_HEADER];
    delete headers["host"];
    if (shown) headers[CERTIFICATE_HEADER] = encodeURIComponent(shown.toString());
    const asked = request(new URL(incoming.url ?? "/", ingress.behind), {
      ...{ agent: upstream, method: incoming.method, headers },
    });
    const end = () => asked.destroy();
    incoming.socket.once("close", end);
    asked.once("close", () => incoming.socket.off("close", end));
    asked.end(body);
    const [answer] = (await once(asked, "response")) as [IncomingMessage];
    const text = await buffer(answer);
    const status = answer.statusCode ?? 502;
    const { "content-length": _, "transfer-encoding": __, ...others } = answer.headers;
    const tampered = status === 200 && text.length > 0 ? changed(path, text) : text;
    outgoing.writeHead(status, others).end(tampered, () => counts.set(path, ingress.delivered(path) + 1));
  };
  const changed = (path: string, text: Buffer) => {
    const body = JSON.parse(text.toString()) as Record<string, unknown>;
    ingress.tamper(path, body);
    return JSON.stringify(body);
  };

  const sockets = new Set<Duplex>();
  const server = createServer(
    { cert: listener, key: listener, requestCert: true, rejectUnauthorized: false },
    (incoming, outgoing) => void forward(incoming, outgoing).catch(() => outgoing.destroy()),
  );
  server.on("connection", (socket) => {
    sockets.add(socket);
    socket.once("close", () => sockets.delete(socket));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  ingress.url = `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
  atEnd(async () => {
    for (const socket of sockets) socket.destroy();
    upstream.destroy();
    await new Promise((resolve) => server.close(resolve));
  });
  return ingress;
}
