// One WebSocket of a client to the gateway, from `openSocket` to closed: frames both ways, acknowledgements, and whether
// the gateway still answers. What its end means is decided by state.ts.

import {
  type ClientFrame,
  type InputPlace,
  readServerFrame,
  type ServerFrame,
  type Size,
  TERMINAL_PROTOCOL,
  TOKEN_PROTOCOL,
  WRITER_PROTOCOL,
} from "@holdfast/contracts/terminal/frames";
import { createLiveness, PING_MS } from "@holdfast/contracts/terminal/liveness";
import type { Environment } from "./environment.ts";
import type { TerminalInput } from "./input.ts";
import { createOutputCredit, type OutputCredit } from "./output-credit.ts";
import type { Grant } from "./states.ts";

export type Connection = {
  send(frame: ClientFrame): void;
  /** Sends what may be sent of the input. */
  sendInput(): void;
  /** No event comes afterwards. */
  close(): void;
};

export type ConnectionOptions<Bytes extends Uint8Array> = {
  grant: Grant;
  openSocket: Environment<Bytes>["openSocket"];
  input: TerminalInput<Bytes>;
  /** As it is when the socket opens; undefined: not known yet. */
  size(): Size | undefined;
  onOpen(): void;
  onFrame(frame: ServerFrame): void;
  /** `shown` when they were processed. */
  onBytes(bytes: Bytes, shown: () => void): void;
  onAcknowledged(): void;
  onClose(detail?: string): void;
  /** It is open, and the gateway does not answer any more. */
  onSilent(): void;
};

export function openConnection<Bytes extends Uint8Array>(options: ConnectionOptions<Bytes>): Connection {
  const { grant, input } = options;
  let credit: OutputCredit = createOutputCredit();
  let pinging: ReturnType<typeof setInterval> | undefined;
  let received = 0;
  let isOver = false;

  const send = (frame: ClientFrame) => {
    if (!isOver && socket.isOpen()) socket.send(JSON.stringify(frame));
  };
  const end = () => {
    isOver = true;
    input.disconnect();
    clearInterval(pinging);
  };
  const pingRegularly = () => {
    const liveness = createLiveness(performance.now());
    pinging = setInterval(() => {
      if (liveness.tick(performance.now(), received) === "ask") return send({ type: "ping" });
      options.onSilent();
    }, PING_MS);
  };
  const sendInput = () => {
    while (!isOver && socket.isOpen()) {
      const piece = input.next();
      if (piece === undefined) return;
      socket.send(piece);
    }
  };
  const placeInput = (place: InputPlace | undefined) => {
    const answer = input.place(place);
    if (answer) send(answer);
    sendInput();
  };
  const onFrame = (frame: ServerFrame) => {
    if (frame.type === "ready") {
      // There is a second one where output of the shell was lost on the way: its bytes are counted from there.
      credit = createOutputCredit();
      placeInput(frame.input);
    } else if (frame.type === "input") placeInput(frame);
    else if (frame.type === "ack") {
      input.acknowledge(frame.bytes);
      sendInput();
      options.onAcknowledged();
    }
    options.onFrame(frame);
  };

  const protocols = [TERMINAL_PROTOCOL, `${TOKEN_PROTOCOL}${grant.token}`, `${WRITER_PROTOCOL}${input.writer}`];
  const socket = options.openSocket(grant.url, protocols, {
    onOpen() {
      if (isOver) return;
      pingRegularly();
      const size = options.size();
      if (size) send({ type: "resize", ...size });
      options.onOpen();
    },
    onText(text) {
      if (isOver) return;
      received += 1;
      const frame = readServerFrame(text);
      if (frame) onFrame(frame);
    },
    onBytes(bytes) {
      if (isOver) return;
      received += 1;
      const own = credit;
      options.onBytes(bytes, () => {
        const total = own.processed(bytes.length);
        if (total !== undefined && own === credit) send({ type: "ack", bytes: total });
      });
    },
    onClose(detail) {
      if (isOver) return;
      end();
      options.onClose(detail);
    },
  });
  return {
    send,
    sendInput,
    close() {
      end();
      socket.close();
    },
  };
}
