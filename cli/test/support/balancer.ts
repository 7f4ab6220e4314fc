// One address for several listeners: each connection goes to the next one that takes it, whatever it speaks.

import { type AddressInfo, createServer, connect as dial, type Socket } from "node:net";

export type Balancer = { port: number; stop(): Promise<void> };

export async function startBalancer(ports: readonly number[]): Promise<Balancer> {
  const sockets = new Set<Socket>();
  let next = 0;
  const pass = (near: Socket, attempts: number) => {
    const far = dial(ports[next++ % ports.length] ?? 0, "127.0.0.1");
    const end = () => {
      near.destroy();
      far.destroy();
    };
    near.on("close", end);
    far.once("error", () => (attempts > 1 ? pass(near, attempts - 1) : end()));
    far.once("connect", () => {
      far.on("error", end).on("close", end);
      near.pipe(far).pipe(near);
    });
  };
  const server = createServer((near) => {
    sockets.add(near);
    near.on("error", () => near.destroy()).on("close", () => sockets.delete(near));
    pass(near, ports.length);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    port: (server.address() as AddressInfo).port,
    async stop() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
