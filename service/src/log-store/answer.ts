// What a process answers when it is asked for its log lines.

import { type LogAnswer, type LogRequest, MOST_ANSWER_BYTES } from "@holdfast/contracts/internal/logs";
import { version } from "../version.ts";
import type { OwnProcess } from "./own-process.ts";

export function answerLogRequest({ logs, settings }: OwnProcess, request: LogRequest): LogAnswer {
  const known = { version, settings: { ...settings } };
  if (!logs) return { ...known, kept: false, lines: [], truncated: false, dropped: 0 };
  const { ids, since, until, limit } = request;
  const times = {
    since: since === null ? undefined : Date.parse(since),
    until: until === null ? undefined : Date.parse(until),
  };
  const found = logs.find({ ids, limit, ...times });
  const lines = newestWithin(found.lines, MOST_ANSWER_BYTES);
  return {
    ...known,
    kept: true,
    lines,
    truncated: found.truncated || lines.length < found.lines.length,
    dropped: found.dropped,
  };
}

function newestWithin(lines: readonly string[], bytes: number): string[] {
  let left = bytes;
  const first = lines.findLastIndex((line) => {
    left -= Buffer.byteLength(line);
    return left < 0;
  });
  return lines.slice(first + 1);
}
