// A relay between agent and api that breaks connections: sometimes before a request has passed,
// sometimes after it has passed and before its answer has. To the agent that is a lost request or
// a lost answer; when it tries again, to the api a duplicate.

import type { AddressInfo } from "node:net";
import { createServer, connect as dial, type Server, type Socket } from "node:net";

export type Relay = {
  port: number;
  /** How many connections were broken. */
  broken(): number;
  /** Lets everything pass from now on. */
  calm(): void;
  stop(): Promise<void>;
};

/** Of all pieces that pass, about one in this many ends its connection. */
const ONE_IN = 60;

export async function startRelay(options: { target: () => number; random: () => number }): Promise<Relay> {
  const sockets = new Set<Socket>();
  let broken = 0;
  let calm = false;
  const join = (near: Socket, far: Socket) => {
    const end = () => {
      near.destroy();
      far.destroy();
    };
    for (const socket of [near, far]) {
      sockets.add(socket);
      socket.on("error", end);
      socket.on("close", () => {
        sockets.delete(socket);
        end();
      });
    }
    const pass = (to: Socket) => (piece: Buffer) => {
      if (calm || options.random() * ONE_IN > 1) return void to.write(piece);
      broken += 1;
      // Half of the time the piece still arrives, and only what would come back is lost.
      if (options.random() < 0.5) to.write(piece, end);
      else end();
    };
    near.on("data", pass(far));
    far.on("data", pass(near));
  };
  const server: Server = createServer((near) => join(near, dial(options.target(), "127.0.0.1")));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    port: (server.address() as AddressInfo).port,
    broken: () => broken,
    calm: () => {
      calm = true;
    },
    stop: async () => {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
