// Lets TLS handshakes begin a few at a time. A handshake costs about a millisecond of processor time, and after a
// restart of the api a whole fleet connects at once: without a limit, every node that is connected already would wait
// until the last handshake is done. A client that connects and sends nothing delays no other.

import type { Server, Socket } from "node:net";

/** In one turn of the event loop. */
const PER_TURN = 4;

type Listener = (socket: Socket) => void;

/** Call before the server listens. Returns a function that ends the handshakes that are still waiting. */
export function paceHandshakes(server: Server, perTurn = PER_TURN): () => void {
  const listeners = server.listeners("connection") as Listener[];
  server.removeAllListeners("connection");
  const waiting: Socket[] = [];
  let begun = 0;
  let scheduled = false;

  const begin = (socket: Socket) => {
    begun += 1;
    for (const listener of listeners) listener.call(server, socket);
  };
  const turn = () => {
    scheduled = false;
    begun = 0;
    for (const socket of waiting.splice(0, perTurn)) {
      socket.off("error", ignore);
      if (!socket.destroyed) begin(socket);
    }
    // Once more after the last, so that later connections are not counted with these.
    if (begun > 0 || waiting.length > 0) schedule();
  };
  const schedule = () => {
    if (scheduled) return;
    scheduled = true;
    setImmediate(turn);
  };

  server.on("connection", (socket: Socket) => {
    schedule();
    if (begun < perTurn && waiting.length === 0) return begin(socket);
    // It may have closed before its turn.
    socket.on("error", ignore);
    waiting.push(socket);
  });
  return () => {
    for (const socket of waiting.splice(0)) socket.destroy();
  };
}

function ignore(): void {}
