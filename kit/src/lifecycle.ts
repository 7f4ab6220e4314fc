// Start and stop of a long-running process. On its own it stops on SIGINT or SIGTERM. Under
// `holdfast up` it communicates with the supervisor over the IPC channel: it reports when it is ready and on
// which ports, and stops on request or when the channel closes, which means that the
// supervisor was killed. Supervised processes run in their own session, so Ctrl-C reaches only the
// supervisor, which stops them in order.

import { UsageError } from "./settings.ts";

/** Sent to the supervisor when the process is ready. Ports by listener name, such as `public`. */
export type ReadyMessage = { type: "ready"; ports: Record<string, number> };

export type RunningProcess = {
  ports: Record<string, number>;
  /** Finishes work in progress, rejects new work, closes everything. */
  stop(): Promise<void>;
};

const exitCode = { failed: 1, usage: 2 } as const;

export type LifecycleLog = { info(message: string): void; fatal(details: object, message: string): void };

/** Runs a process to its end. Resolves never: it exits, with 0 after a clean stop. */
export async function runProcess(log: LifecycleLog, start: () => Promise<RunningProcess>): Promise<void> {
  const stopRequested = new Promise<string>((resolve) => {
    process.once("SIGTERM", () => resolve("SIGTERM"));
    process.once("SIGINT", () => resolve("SIGINT"));
    // A supervisor that died while this code was being loaded has left `send` without a connection.
    if (process.connected) process.once("disconnect", () => resolve("supervisor is gone"));
    else if (process.send) resolve("supervisor is gone");
  });
  process.on("uncaughtException", (error) => fail(log, error));
  process.on("unhandledRejection", (error) => fail(log, error));

  let running: RunningProcess;
  try {
    running = await start();
  } catch (error) {
    return fail(log, error);
  }
  const ready: ReadyMessage = { type: "ready", ports: running.ports };
  if (process.connected) process.send?.(ready);

  const reason = await stopRequested;
  log.info(`stopping: ${reason}`);
  await running.stop();
  process.exit(0);
}

function fail(log: LifecycleLog, error: unknown): never {
  if (error instanceof UsageError) {
    process.stderr.write(`${error.message}\n`);
    process.exit(exitCode.usage);
  }
  log.fatal({ err: error }, "stopping after an unhandled error");
  process.exit(exitCode.failed);
}
