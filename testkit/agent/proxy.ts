// A proxy in front of the node-facing API, as an ingress that may or may not pass on upgrades. It has the certificates that
// `holdfast ingress` gets, and forwards those of nodes as nginx does.

import { once } from "node:events";
import { readFileSync } from "node:fs";
import type { IncomingMessage, ServerResponse } from "node:http";
import { createServer, Agent as HttpsAgent, request } from "node:https";
import type { AddressInfo, Socket } from "node:net";
import { join } from "node:path";
import type { Duplex } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { TLSSocket } from "node:tls";
import { CERTIFICATE_HEADER } from "@holdfast/contracts/headers";
import { readSettings } from "@holdfast/kit/settings";
import { getCertificates } from "../../cli/src/ingress/keep.ts";
import { ingressSettings } from "../../cli/src/ingress/settings.ts";
import type { TestApi } from "../api/api.ts";
import { atEnd } from "../lifetime/at-end.ts";
import { scratchDirectory } from "./scratch.ts";

export type Proxy = {
  /** For an agent, in place of the api's. */
  url: string;
  /** At first it does not: like most proxies, it drops the headers of an upgrade. */
  passUpgrades(): void;
};

/** The api has this token as HOLDFAST_INGRESS_TOKEN, and a service token, without which it has no internal listener. */
export async function startProxy(api: TestApi, token: string): Promise<Proxy> {
  const directory = scratchDirectory();
  await getCertificates(
    readSettings(ingressSettings, {
      HOLDFAST_API_INTERNAL_URL: api.internalUrl,
      HOLDFAST_INGRESS_TOKEN: token,
      HOLDFAST_INGRESS_DIR: directory,
    }),
  );
  const pem = (name: string) => readFileSync(join(directory, `${name}.pem`), "utf8");
  const own = { cert: pem("ingress"), key: pem("ingress"), ca: pem("trust") };
  const agent = new HttpsAgent({ ...own, keepAlive: true });

  const forwarded = ({ url = "/", method, headers, socket }: IncomingMessage, upgrades: boolean) => {
    const { connection, upgrade, host, [CERTIFICATE_HEADER]: _, ...others } = headers;
    const shown = (socket as TLSSocket).getPeerX509Certificate();
    return request(new URL(url, api.nodeUrl), {
      ...(upgrades ? { ...own, agent: false } : { agent }),
      method,
      headers: {
        ...others,
        ...(upgrades ? { connection, upgrade } : {}),
        ...(shown ? { [CERTIFICATE_HEADER]: encodeURIComponent(shown.toString()) } : {}),
      },
    });
  };
  const forward = async (incoming: IncomingMessage, outgoing: ServerResponse) => {
    const asked = forwarded(incoming, false);
    const abandon = () => asked.destroy();
    outgoing.once("close", abandon);
    const responded = once(asked, "response") as Promise<[IncomingMessage]>;
    await pipeline(incoming, asked);
    const [answer] = await responded;
    const { connection: __, ...headers } = answer.headers;
    outgoing.writeHead(answer.statusCode ?? 502, headers);
    await pipeline(answer, outgoing);
  };
  const upgrade = (incoming: IncomingMessage, near: Duplex, head: Buffer) => {
    near.on("error", () => near.destroy());
    const asked = forwarded(incoming, true);
    asked.on("error", () => near.destroy());
    asked.on("response", (answer) => {
      near.write(
        `HTTP/1.1 ${answer.statusCode} Refused\r\ncontent-type: application/json\r\nconnection: close\r\n\r\n`,
      );
      answer.pipe(near);
    });
    asked.on("upgrade", (answer, far: Socket, farHead: Buffer) => {
      far.on("error", () => near.destroy());
      near.on("close", () => far.destroy());
      far.on("close", () => near.destroy());
      const lines = Object.entries(answer.headers).map(([name, value]) => `${name}: ${String(value)}\r\n`);
      near.write(`HTTP/1.1 101 Switching Protocols\r\n${lines.join("")}\r\n`);
      near.write(farHead);
      far.write(head);
      near.pipe(far).pipe(near);
    });
    asked.end();
  };

  const sockets = new Set<Socket>();
  const server = createServer(
    { cert: pem("listener"), key: pem("listener"), requestCert: true, rejectUnauthorized: false },
    (incoming, outgoing) => void forward(incoming, outgoing).catch(() => outgoing.destroy()),
  );
  server.on("connection", (socket: Socket) => {
    sockets.add(socket);
    socket.once("close", () => sockets.delete(socket));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  atEnd(async () => {
    for (const socket of sockets) socket.destroy();
    agent.destroy();
    await new Promise((resolve) => server.close(resolve));
  });
  return {
    url: `https://127.0.0.1:${(server.address() as AddressInfo).port}`,
    // Without a listener for it, Node.js treats an upgrade as an ordinary request.
    passUpgrades: () => void server.on("upgrade", upgrade),
  };
}
