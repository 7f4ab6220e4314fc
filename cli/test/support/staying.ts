// A process that is started again whenever it ends, as a service manager does.

import type { Started } from "../../../testkit/processes/holdfast.ts";

export type Staying = {
  pid(): number;
  /** Resolves when the process that runs now has ended. */
  end(signal: NodeJS.Signals): Promise<void>;
  /** For good. */
  stop(): Promise<void>;
};

/** `again`: how it is started after the first time, if that differs. */
export function stayRunning(start: () => Started, again: () => Started = start): Staying {
  let running = start();
  let stopping = false;
  const staying = (async () => {
    while (!stopping) {
      await running.ended;
      if (!stopping) running = again();
    }
  })();
  return {
    pid: () => running.process.pid ?? 0,
    async end(signal) {
      const { process: child, ended } = running;
      child.kill(signal);
      await ended;
    },
    async stop() {
      stopping = true;
      running.process.kill("SIGTERM");
      await staying;
    },
  };
}
