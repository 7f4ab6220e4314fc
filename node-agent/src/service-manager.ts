// Reports the agent's state to systemd (sd_notify(3)): when it is ready, what it is doing, and three times in each
// watchdog period that it is alive. Node.js cannot open the kind of socket that systemd listens on, so
// systemd-notify does: 8 ms of one processor each time.

import type { ChildProcess } from "node:child_process";
import type { Environment } from "@holdfast/kit/settings";

export type ServiceManager = {
  ready(): void;
  /** One line, as `systemctl status` shows it. */
  status(text: string): void;
  /** Starts the watchdog reports, which are sent while the agent is alive. */
  watch(isAlive: () => boolean): void;
  stopping(): void;
};

type Send = (variables: readonly string[]) => Promise<void>;

const variables = ["NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"] as const;
const LONGEST_STATUS = 200;
const SEND_MS = 10_000;

/**
 * Undefined without systemd. Its variables are removed from the environment, so that no child process of the agent
 * reports in its name. A supervised agent (`holdfast up`) is not the service: its supervisor is.
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
  /** Pending variables; a newer value replaces the previous one. */
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

/** Never rejects: a lost report is repeated soon, or the watchdog acts. */
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
