// What a page keeps of a serial log that it follows: the newest part.

import type { AnswerOf } from "@holdfast/contracts/endpoint";
import type { readLeaseLog } from "@holdfast/contracts/endpoints/leases";

type Piece = AnswerOf<typeof readLeaseLog>;

export type SerialLog = {
  text: string;
  /** Older output is not shown. */
  cut: boolean;
  /** Nothing was read yet. */
  loading: boolean;
  error: Error | undefined;
};

const KEPT_CHARACTERS = 256 * 1024;

export const nothing: SerialLog = { text: "", cut: false, loading: true, error: undefined };

export function withPiece(log: SerialLog, piece: Pick<Piece, "text" | "skipped">): SerialLog {
  const text = piece.skipped ? piece.text : log.text + piece.text;
  const cut = piece.skipped || log.cut || text.length > KEPT_CHARACTERS;
  return { text: newest(text), cut, loading: false, error: undefined };
}

/** From the beginning of a line, if there is one. */
function newest(text: string): string {
  if (text.length <= KEPT_CHARACTERS) return text;
  const start = text.length - KEPT_CHARACTERS;
  const line = text.indexOf("\n", start);
  return text.slice(line === -1 || line === text.length - 1 ? start : line + 1);
}
