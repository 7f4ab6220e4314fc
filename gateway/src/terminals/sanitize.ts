// Sanitizes text from a node, which is not trusted, so that it can be stored, logged and displayed.

import type { NodeFrame } from "@holdfast/contracts/terminal/frames";
import type { Exit, Why } from "./states.ts";

export const MOST_DETAIL_CHARACTERS = 400;
export const MOST_CODE_CHARACTERS = 64;
const MOST_SIGNAL_CHARACTERS = 32;

export function errorOf({ code, message }: Extract<NodeFrame, { type: "error" }>): Why {
  return { code: harmless(code, MOST_CODE_CHARACTERS), detail: harmless(message, MOST_DETAIL_CHARACTERS) };
}

export function exitOf({ code, signal }: Extract<NodeFrame, { type: "exit" }>): Exit {
  return {
    code: Number.isSafeInteger(code) ? code : null,
    signal: signal === null ? null : harmless(signal, MOST_SIGNAL_CHARACTERS),
  };
}

function harmless(text: string, most: number): string {
  return text
    .slice(0, most)
    .toWellFormed()
    .replace(/\p{Cc}/gu, " ")
    .trim();
}
