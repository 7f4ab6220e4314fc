import { createServer, type Server, type Socket } from "node:net";
import { describe, expect, it } from "vitest";
import { paceHandshakes } from "./handshakes.ts";

function paced(perTurn: number): {
  server: Server;
  begun: number[];
  socket: (number: number) => Socket;
  end: () => void;
} {
  const begun: number[] = [];
  const server = createServer((socket) => begun.push((socket as Socket & { number: number }).number));
  const end = paceHandshakes(server, perTurn);
  const socket = (number: number) => {
    const listeners = new Set<unknown>();
    const made = {
      number,
      destroyed: false,
      on: (_event: string, listener: unknown) => listeners.add(listener),
      off: (_event: string, listener: unknown) => listeners.delete(listener),
      destroy: () => {
        made.destroyed = true;
      },
    };
    return made as unknown as Socket;
  };
  return { server, begun, socket, end };
}
const turn = () => new Promise(setImmediate);

describe("handshakes", () => {
  it("begin a few at a time, in the order in which clients came", async () => {
    const { server, begun, socket } = paced(2);
    for (const number of [1, 2, 3, 4, 5]) server.emit("connection", socket(number));
    expect(begun).toEqual([1, 2]);
    await turn();
    expect(begun).toEqual([1, 2, 3, 4]);
    server.emit("connection", socket(6));
    await turn();
    await turn();
    expect(begun).toEqual([1, 2, 3, 4, 5, 6]);
    server.emit("connection", socket(7));
    expect(begun.at(-1)).toBe(7);
  });

  it("do not begin for whoever has gone, nor when the server stops", async () => {
    const { server, begun, socket, end } = paced(1);
    const [, gone, waiting] = [1, 2, 3].map((number) => {
      const one = socket(number);
      server.emit("connection", one);
      return one;
    });
    gone?.destroy();
    await turn();
    end();
    await turn();
    expect(begun).toEqual([1]);
    expect(waiting?.destroyed).toBe(true);
  });
});
