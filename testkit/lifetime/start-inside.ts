// Runs a process of Holdfast inside the test's own process, on free ports.

import { createLog, type Log } from "@holdfast/service/log";
import { atEnd } from "./at-end.ts";

type Running = { ports: Record<string, number | undefined>; stop(): Promise<void> };

export type Inside<Started extends Running> = {
  ports: Started["ports"];
  /** Everything that was logged so far, a line each. */
  logged(): string;
  /** Stops it once; at the latest, it is stopped after the test file. */
  stop(): Promise<void>;
};

export async function startInside<Started extends Running>(
  process: string,
  start: (log: Log) => Promise<Started>,
): Promise<Inside<Started>> {
  const lines: string[] = [];
  const log = createLog({ process, level: "trace", destination: { write: (line) => lines.push(line) } });
  const running = await start(log);
  let stopped: Promise<void> | undefined;
  const stop = () => {
    stopped ??= running.stop();
    return stopped;
  };
  atEnd(stop);
  return { ports: running.ports, logged: () => lines.join(""), stop };
}
