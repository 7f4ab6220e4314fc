// What a held poll costs a server that does nothing else: the floor below our own figure.

import { once } from "node:events";
import { createSecureContext, connect as dial, type TLSSocket } from "node:tls";
import { fileURLToPath } from "node:url";
import { temporaryAuthority } from "@holdfast/control-plane/identity/authority";
import { readKeyRequest } from "@holdfast/control-plane/identity/requests";
import { certificateRequest, newPrivateKey, privateKeyPem } from "@holdfast/kit/certificate-request";
import { uuidv7 } from "@holdfast/kit/uuid";
import type { Lab } from "../lab.ts";
import type { BareTls } from "../peers/bare-tls.ts";
import { residentKb } from "./measures.ts";

const CONNECTIONS = 1_000;
/** Before the first measurement: code is compiled, pools are there. */
const WARM = 50;
const AT_ONCE = 8;

/** KB of resident memory for each connection. */
export async function memoryOfBareConnection(lab: Lab): Promise<number> {
  const authority = temporaryAuthority(new Date());
  const key = newPrivateKey();
  const { publicKey } = readKeyRequest(certificateRequest(key, "bench"));
  const node = authority.issueToNode({ id: uuidv7(), publicKey }, new Date());
  const server = authority.issueToServer(["127.0.0.1"], new Date());
  const peer: BareTls = { cert: server.cert, key: server.key, authorities: [...authority.certificates] };
  const program = lab.start({
    command: process.execPath,
    args: [fileURLToPath(new URL("../peers/bare-tls.ts", import.meta.url))],
    env: { BENCH_PEER: JSON.stringify(peer) },
  });
  const { port } = (await program.ready) as { port: number };
  const secureContext = createSecureContext({
    key: privateKeyPem(key),
    cert: node.chain,
    ca: [...authority.trustBundle],
  });
  const sockets: TLSSocket[] = [];
  const hold = async () => {
    const socket = dial({ host: "127.0.0.1", port, secureContext });
    await once(socket, "secureConnect");
    socket.write("GET / HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n");
    socket.on("error", () => undefined);
    sockets.push(socket);
  };
  const grow = async (connections: number) => {
    const lane = async () => {
      while (sockets.length < connections) await hold();
    };
    await Promise.all(Array.from({ length: AT_ONCE }, lane));
    await new Promise((resolve) => setTimeout(resolve, 1_000));
    return { connections: sockets.length, kilobytes: residentKb(program.pid) };
  };
  const before = await grow(WARM);
  const after = await grow(CONNECTIONS);
  for (const socket of sockets) socket.destroy();
  await program.stop();
  return (after.kilobytes - before.kilobytes) / (after.connections - before.connections);
}
