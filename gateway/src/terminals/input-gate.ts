// Which of a client's bytes are passed to the node. A client with a writer's id resends input from the byte that the
// node expects after every attachment; until it announces that, its input belongs to an earlier attachment and is
// dropped. Input of a client without one (an older version) is forwarded while there is a shell.

import type { ClientFrame, InputPlace, ServerFrame } from "@holdfast/contracts/terminal/frames";

export type InputGate = {
  isOpen(): boolean;
  /** The client is being attached; returns the writer's part of that frame. */
  attaching(): { writer?: string };
  /** The node attached it and expects this byte next; undefined: it does not count. Returns what to send to the client. */
  attached(attachment: number, from: number | undefined): { input?: InputPlace };
  /** The client resends from this byte on. */
  answered(frame: Extract<ClientFrame, { type: "input" }>): void;
  /** Bytes were forwarded. Returns the acknowledgement if the node sends none. */
  passed(bytes: number): ServerFrame | undefined;
  /** The node's stream is closed. */
  close(): void;
};

export function createInputGate(writer: string | undefined): InputGate {
  let open = false;
  let awaited: InputPlace | undefined;
  /** Bytes forwarded to a node that does not count; null: it does, or it is not known. */
  let passed: number | null = null;
  let nodeCounts = true;
  return {
    isOpen: () => open,
    attaching() {
      open = writer === undefined;
      awaited = undefined;
      return writer === undefined ? {} : { writer };
    },
    attached(attachment, from) {
      if (writer === undefined) return {};
      nodeCounts = from !== undefined;
      awaited = { attachment, from: from ?? passed };
      return { input: awaited };
    },
    answered({ attachment, from }) {
      if (awaited?.attachment !== attachment || from !== (awaited.from ?? from)) return;
      passed = nodeCounts ? null : from;
      open = true;
    },
    passed(bytes) {
      if (passed === null) return undefined;
      passed += bytes;
      return { type: "ack", bytes: passed };
    },
    close() {
      open = false;
      awaited = undefined;
    },
  };
}
