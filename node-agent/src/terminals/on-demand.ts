// Terminals as the rest of the agent sees them. What they need is loaded when the first one is opened, or
// when an earlier agent process left some: an idle agent uses no memory for them.

import { TaskFailed, type Terminals as TaskTerminals } from "@holdfast/tasks/executor";
import { findSockets } from "./directory.ts";
import type { Terminals, TerminalsOptions } from "./terminals.ts";

export type TerminalsOnDemand = TaskTerminals & {
  /** Adopts the shells of an earlier agent process. */
  resume(): void;
  count(): number;
  /** Ends every shell: the node was revoked or retired. */
  endAll(): void;
  /** The shells keep running. */
  stop(): void;
};

export function createTerminalsOnDemand(options: TerminalsOptions): TerminalsOnDemand {
  let loading: Promise<Terminals> | undefined;
  let loaded: Terminals | undefined;
  let stopped = false;
  /** Resolves when the shells of an earlier agent process are adopted. */
  const resumed = Promise.withResolvers<void>();

  const load = async (): Promise<Terminals> => {
    const { createTerminals } = await import("./terminals.ts");
    loaded = createTerminals(options);
    return loaded;
  };
  const terminals = () => {
    loading ??= load().catch((error: Error) => {
      loading = undefined;
      throw new TaskFailed("terminal_pty_failed", `The agent cannot hold terminals: ${error.message}`);
    });
    return loading;
  };

  return {
    async open(wanted) {
      const all = await terminals();
      if (stopped) throw new TaskFailed("terminal_pty_failed", "The agent is stopping.");
      return all.open(wanted);
    },
    async recover(taskId, signal) {
      await resumed.promise;
      signal.throwIfAborted();
      return loaded?.recover(taskId, signal);
    },
    resume() {
      if (findSockets(options.stateDir).length === 0) return resumed.resolve();
      terminals()
        .then((all) => (stopped ? undefined : all.resume()))
        .catch((error: TaskFailed) => options.onFailure(error.code, error.message, undefined))
        .finally(resumed.resolve);
    },
    count: () => loaded?.count() ?? 0,
    endAll: () => void loading?.then((all) => all.endAll()).catch(() => {}),
    stop() {
      stopped = true;
      loaded?.stop();
    },
  };
}
