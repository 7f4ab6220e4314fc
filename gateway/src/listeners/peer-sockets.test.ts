import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, describe, expect, it } from "vitest";
import { WebSocket } from "ws";
import { peerSockets } from "./peer-sockets.ts";

const http = createServer();
const peers = peerSockets({ pingMs: 700 });
http.on("upgrade", (request, socket, head) =>
  peers.server.handleUpgrade(request, socket, head, (opened) => peers.watch(opened, socket)),
);

afterAll(async () => {
  await peers.stop(0);
  http.close();
});

async function connect(options: { autoPong: boolean }): Promise<WebSocket> {
  if (!http.listening) await once(http.listen(0, "127.0.0.1"), "listening");
  const socket = new WebSocket(`ws://127.0.0.1:${(http.address() as AddressInfo).port}`, options);
  await once(socket, "open");
  return socket;
}

describe("sockets of peers", () => {
  it("TERM-10 one that answers stays, one that does not is let go", async () => {
    const answers = await connect({ autoPong: true });
    const silent = await connect({ autoPong: false });
    const [code] = await once(silent, "close");
    expect(code).toBe(1006);
    await once(answers, "ping");
    await once(answers, "ping");
    expect([answers.readyState, peers.size()]).toEqual([answers.OPEN, 1]);
  });

  it("TERM-10 a frame of more than a megabyte ends the connection", async () => {
    const socket = await connect({ autoPong: true });
    socket.send(Buffer.alloc(1024 * 1024 + 1));
    const [code] = await once(socket, "close");
    expect(code).toBe(1009);
  });

  it("TERM-10 a ping of the peer is answered", async () => {
    const socket = await connect({ autoPong: true });
    socket.ping("hello");
    const [data] = await once(socket, "pong");
    expect(String(data)).toBe("hello");
  });
});
