// Runs a process of Holdfast inside the test's own process, on free ports.

import { createLog, type Log, type LogOptions } from "@holdfast/service/log";
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
  options: Pick<LogOptions, "store" | "secrets"> = {},
): Promise<Inside<Started>> {
  // One text from the start: tests look at it after every request, and its length costs nothing.
  let text = "";
  const destination = { write: (line: string) => (text += line) };
  const log = createLog({ process, level: "trace", destination, ...options });
  const running = await start(log);
  let stopped: Promise<void> | undefined;
  const stop = () => {
    stopped ??= running.stop();
    return stopped;
  };
  atEnd(stop);
  return { ports: running.ports, logged: () => text, stop };
}
