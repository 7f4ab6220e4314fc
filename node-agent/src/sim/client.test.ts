import { randomUUID, X509Certificate } from "node:crypto";
import { once } from "node:events";
import https from "node:https";
import { type AddressInfo, createServer } from "node:net";
import type { TLSSocket } from "node:tls";
import { certificateRequest, newPrivateKey, privateKeyPem } from "@holdfast/kit/certificate-request";
import { afterEach, expect, it } from "vitest";
import { makeAuthority } from "../../../testkit/agent/fake-authority.ts";
import { lookupBy } from "../link/lookup.ts";
import { createSimClient, type SimClient } from "./client.ts";

const closers: (() => void)[] = [];
afterEach(() => {
  for (const close of closers.splice(0)) close();
});

const REFUSAL = JSON.stringify({ code: "cert_expired", message: "expired" });

/** A server that refuses everybody and keeps which certificates it saw. The first handshake begins when the test says so. */
async function startServer() {
  const authority = await makeAuthority();
  const seen: string[] = [];
  const presented = ({ socket }: { socket: unknown }) =>
    seen.push((socket as TLSSocket).getPeerX509Certificate()?.serialNumber ?? "none");
  const server = https.createServer(
    { ...(await authority.server()), requestCert: true, rejectUnauthorized: false },
    (request, response) => {
      presented(request);
      response.writeHead(401, { connection: "close", "content-length": REFUSAL.length }).end(REFUSAL);
    },
  );
  server.on("upgrade", (request, socket) => {
    presented(request);
    socket.end(
      `HTTP/1.1 401 Unauthorized\r\nconnection: close\r\ncontent-length: ${REFUSAL.length}\r\n\r\n${REFUSAL}`,
    );
  });
  const first = Promise.withResolvers<() => void>();
  let connections = 0;
  const below = createServer({ pauseOnConnect: true }, (socket) => {
    closers.push(() => socket.destroy());
    const begin = () => void server.emit("connection", socket);
    connections += 1;
    if (connections === 1) first.resolve(begin);
    else begin();
  }).listen(0, "127.0.0.1");
  await once(below, "listening");
  closers.push(() => below.close());
  const nodeId = randomUUID();
  const credentials = async () => {
    const key = newPrivateKey();
    const chainPem = await authority.certify(certificateRequest(key, "n"), nodeId);
    return { keyPem: privateKeyPem(key), chainPem, roots: [authority.rootPem] };
  };
  const apiUrl = `https://127.0.0.1:${(below.address() as AddressInfo).port}`;
  return { seen, nodeId, credentials, apiUrl, firstHandshake: first.promise };
}

it.for(["stream", "poll"] as const)(
  "ID-05 presents its new certificate, also when a connection with the old one was under way: %s",
  async (link) => {
    const server = await startServer();
    const { apiUrl, nodeId } = server;
    const [old, fresh] = [await server.credentials(), await server.credentials()];
    const client = createSimClient({
      ...{ apiUrl, nodeId, instanceId: randomUUID(), bootId: "b", link, lookup: lookupBy(() => ({})) },
      ...{ credentials: old, myTurn: (connect) => connect() },
    });
    closers.push(() => client.hangUp());
    const ask = () => client.heartbeat({} as Parameters<SimClient["heartbeat"]>[0]).catch(() => undefined);
    const asked = ask();
    const beginHandshake = await server.firstHandshake;
    client.use({ apiUrl, credentials: fresh });
    beginHandshake();
    await asked;
    await ask();
    const serialOf = ({ chainPem }: typeof old) => new X509Certificate(chainPem).serialNumber;
    expect([server.seen[0], server.seen.at(-1)]).toEqual([serialOf(old), serialOf(fresh)]);
  },
);
