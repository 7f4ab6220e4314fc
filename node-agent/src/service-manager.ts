// Tells systemd how the agent is (sd_notify(3)): when it is ready, what it is doing, and three times in each
// watchdog period that it is alive. Node.js cannot open the kind of socket that systemd listens on, so
// systemd-notify does: 8 ms of one processor each time.

import type { ChildProcess } from "node:child_process";
import type { Environment } from "@holdfast/kit/settings";

export type ServiceManager = {
  ready(): void;
  /** One line, as `systemctl status` shows it. */
  status(text: string): void;
  /** From now on says that the agent is alive, whenever it is. */
  watch(isAlive: () => boolean): void;
  stopping(): void;
};

type Send = (variables: readonly string[]) => Promise<void>;

const variables = ["NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"] as const;
const LONGEST_STATUS = 200;
const SEND_MS = 10_000;

/**
 * Undefined where nobody listens. What systemd gave is taken out of the environment, so that nothing which the
 * agent starts speaks in its name. A supervised agent (`holdfast up`) is not the service: its supervisor is.
 */
export function openServiceManager(
  env: Environment,
  options: { supervised: boolean; send?: Send } = { supervised: process.connected },
): ServiceManager | undefined {
  const [socket, period, pid] = variables.map((name) => env[name]);
  for (const name of variables) delete env[name];
  if (!socket || options.supervised) return undefined;
  const periodMs = pid === undefined || Number(pid) === process.pid ? Number(period ?? 0) / 1000 : 0;
  const send = options.send ?? ((lines) => notify(socket, lines));
  let sent = "";
  /** What waits to be said; a newer value of a name replaces the one before. */
  let waiting = new Map<string, string>();
  let sending = false;

  const flush = async () => {
    if (sending) return;
    sending = true;
    while (waiting.size > 0) {
      const next = [...waiting].map(([name, value]) => `${name}=${value}`);
      waiting = new Map();
      await send(next);
    }
    sending = false;
  };
  const tell = (name: string, value: string) => {
    waiting.set(name, value);
    void flush();
  };

  return {
    ready: () => tell("READY", "1"),
    status(text) {
      const line = text.replace(/\p{Cc}+/gu, " ").slice(0, LONGEST_STATUS);
      if (line === sent) return;
      sent = line;
      tell("STATUS", line);
    },
    watch(isAlive) {
      if (periodMs <= 0) return;
      setInterval(() => {
        if (isAlive()) tell("WATCHDOG", "1");
      }, periodMs / 3).unref();
    },
    stopping: () => tell("STOPPING", "1"),
  };
}

/** Never rejects: what was not received is sent again soon, or systemd acts on the silence. */
async function notify(socket: string, lines: readonly string[]): Promise<void> {
  const { spawn } = await import("node:child_process");
  await new Promise<void>((resolve) => {
    const child: ChildProcess = spawn("systemd-notify", ["--", ...lines], {
      env: { PATH: "/usr/bin:/bin", NOTIFY_SOCKET: socket },
      stdio: "ignore",
      timeout: SEND_MS,
      killSignal: "SIGKILL",
    });
    child.once("error", () => resolve());
    child.once("exit", () => resolve());
  });
}
