// Which of a client's bytes are passed to the node. A client with a writer's id sends input again from where the node
// wants it after every attachment; until it says that it does, what arrives from it belongs to an earlier attachment and
// is dropped. A client without one (an older version) is passed on for as long as there is a shell to pass it to.

import type { ClientFrame, InputPlace, ServerFrame } from "@holdfast/contracts/terminal-frames";

export type InputGate = {
  isOpen(): boolean;
  /** The node is asked to attach the client; returns what that frame says of the writer. */
  attaching(): { writer?: string };
  /** It did, and wants this byte next; undefined: it does not count. Returns what to send to the client. */
  attached(attachment: number, from: number | undefined): { input?: InputPlace };
  /** The client starts to send again from there. */
  answered(frame: Extract<ClientFrame, { type: "input" }>): void;
  /** Bytes were passed on. Returns the acknowledgement where the node gives none. */
  passed(bytes: number): ServerFrame | undefined;
  /** The node's stream is closed. */
  close(): void;
};

export function createInputGate(writer: string | undefined): InputGate {
  let open = false;
  let awaited: InputPlace | undefined;
  /** What was passed on for a node that does not count; null: it does, or nobody knows. */
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
