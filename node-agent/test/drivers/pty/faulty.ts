// A PTY driver with one fault: the real one, except where the fault says otherwise. The contract suite has to notice each
// fault, and the agent's terminals have to survive it.

import { identify, signalIfAlive } from "@holdfast/kit/processes";
import type { HolderConnection, HolderEvents, PtyDriver } from "../../../src/drivers/pty/driver.ts";
import { ptyDriver } from "../../../src/drivers/pty/pty-driver.ts";

export type PtyFault =
  /** The holder cannot be started, and that is reported. */
  | "start_fails"
  /** The holder never becomes ready, and nothing is reported. */
  | "start_hangs"
  /** The holder takes the connection and says nothing. */
  | "connect_hangs"
  /** The holder is gone by the time it is connected to. */
  | "dies_before_connect"
  /** The host has no PTY for the shell. */
  | "become_fails"
  /** The holder dies instead of becoming a shell. */
  | "become_dies"
  /** The holder takes its orders and says nothing. */
  | "become_hangs"
  /** The connection breaks as soon as there is a shell; the shell goes on. */
  | "loses_connection"
  /** The holder, and with it the shell, is killed as soon as there is one. */
  | "dies_early"
  /** Output of the shell is lost. */
  | "loses_output"
  /** Input is taken and never reaches the shell. */
  | "loses_input"
  /** Whatever is ordered after the shell runs is ignored: size, close, done. */
  | "ignores_orders"
  /** The shell's notes are lost. */
  | "loses_notes";

export const ptyFaults: readonly PtyFault[] = [
  ...(["start_fails", "start_hangs", "connect_hangs", "dies_before_connect"] as const),
  ...(["become_fails", "become_dies", "become_hangs", "loses_connection", "dies_early"] as const),
  ...(["loses_output", "loses_input", "ignores_orders", "loses_notes"] as const),
];

const forever = () => new Promise<never>(() => undefined);

export function faultyPtyDriver(fault: PtyFault, real: PtyDriver = ptyDriver()): PtyDriver {
  return {
    ...real,
    launch(holder) {
      if (fault === "start_fails") return { onFailure: (report) => setImmediate(() => report("spawn EAGAIN")) };
      if (fault === "start_hangs") return { onFailure() {} };
      return real.launch(holder);
    },
    async connect(path, withinMs) {
      if (fault === "connect_hangs") {
        await new Promise((resolve) => setTimeout(resolve, Math.min(withinMs, 1_000)));
        throw new Error("the holder does not answer");
      }
      const connection = await real.connect(path, withinMs);
      if (fault !== "dies_before_connect") return faultyConnection(fault, connection);
      kill(connection.first.pid);
      connection.leave();
      throw new Error("the holder ended");
    },
  };
}

function faultyConnection(fault: PtyFault, real: HolderConnection): HolderConnection {
  /** The connection's own process is the holder until it is a shell. */
  const holder = real.first.pid;
  let isShell = real.first.type === "shell";
  let listener: HolderEvents | undefined;
  const loseConnection = () => {
    real.leave();
    listener?.onGone();
  };
  const first =
    fault === "loses_notes" && real.first.type === "shell" ? { ...real.first, notes: undefined } : real.first;
  return {
    ...real,
    first,
    async become(orders) {
      switch (fault) {
        case "become_fails":
          throw new Error("This host gives no PTY: forkpty(3) failed.");
        case "become_dies":
          kill(holder);
          return real.become(orders);
        case "become_hangs":
          return forever();
      }
      const kept = await real.become(orders);
      isShell = true;
      if (fault === "dies_early") kill(holder);
      if (fault === "loses_connection") setImmediate(loseConnection);
      return kept;
    },
    listen(events) {
      listener = events;
      real.listen(fault === "loses_output" ? { ...events, onBytes() {} } : events);
    },
    send(message) {
      if (fault === "ignores_orders" && isShell && message.type !== "attach") return;
      real.send(message);
    },
    sendBytes: (bytes, most) => (fault === "loses_input" ? true : real.sendBytes(bytes, most)),
  };
}

function kill(pid: number): void {
  const found = identify(pid);
  if (found) signalIfAlive(found, "SIGKILL");
}
