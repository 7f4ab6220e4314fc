// Watches one running VM: its QMP socket for the end of QEMU, and the guest's channel. It changes nothing on the host but the
// record of the guest, which is on disk before the guest gets a reply.

import { randomBytes } from "node:crypto";
import type { Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { isAlive, type ProcessIdentity } from "@holdfast/kit/processes";
import { SEED_NODE } from "../drivers/qemu/command.ts";
import type { VmFiles } from "../drivers/qemu/driver.ts";
import { connectQmp, type Qmp, type QmpEvent } from "../drivers/qemu/qmp.ts";
import { connectTo } from "../drivers/qemu/unix-socket.ts";
import { answerLine, LONGEST_LINE } from "./handshake.ts";
import type { GuestRecord } from "./record.generated.ts";

export type GuestWatch = {
  /** Lets a paused VM go on. Rejects if QEMU does not. */
  resume(): Promise<void>;
  /** Asks the guest to shut down; resolves when it was asked. */
  powerDown(): Promise<void>;
  /** Sends a line to the guest. False: it is not connected. */
  send(line: string): boolean;
  stop(): void;
};

const RETRY_MS = 200;
/** Of QMP's `query-block`. */
type Device = { "io-status"?: string; inserted?: { "node-name"?: string } };

export function watchGuest(options: {
  files: Pick<VmFiles, "qmp" | "channel">;
  process: ProcessIdentity;
  record: () => GuestRecord;
  /** On disk when it returns. */
  save: (record: GuestRecord) => void;
  /** Seconds since the boot of the host. */
  now: () => number;
  /** Called with every line of a guest that has connected before, except for those of the handshake. */
  onLine: (line: string) => void;
  /** Called when the VM is paused because its guest has read its seed. */
  onPaused: () => void;
  /** Called once, when the process is gone. */
  onGone: (why: "guest_off" | "process_gone") => void;
  log: (message: string, error: unknown) => void;
}): GuestWatch {
  const { files } = options;
  let stopped = false;
  let shutDown = false;
  let qmp: Qmp | undefined;
  let channel: Socket | undefined;
  let welcomed = false;

  const save = (record: GuestRecord) => {
    try {
      options.save(record);
      return true;
    } catch (error) {
      options.log("could not record what a guest presented", error);
      return false;
    }
  };
  const onEvent = ({ name, data }: QmpEvent) => {
    if (name === "SHUTDOWN") shutDown = true;
    if (name === "STOP") void lookForPause();
    if (name !== "VSERPORT_CHANGE" || data["open"] !== false) return;
    welcomed = false;
    const record = options.record();
    if (record.connected_at !== null && record.disconnected_at === null)
      save({ ...record, disconnected_at: options.now() });
  };

  /** The end of the disk that overlays are on stops a VM as well. */
  const lookForPause = async () => {
    const devices = (await qmp?.execute("query-block").catch(() => [])) as Device[] | undefined;
    const seed = devices?.find(({ inserted }) => inserted?.["node-name"] === SEED_NODE);
    if (!stopped && seed?.["io-status"] === "failed") options.onPaused();
  };

  const onLine = (socket: Socket, line: string) => {
    const newSecret = randomBytes(32).toString("base64url");
    const record = options.record();
    // Not `welcomed`: what a command wrote while the agent was away comes before the next handshake.
    if (record.connected_at !== null && /^(out|exit) /.test(line)) return options.onLine(line);
    const step = answerLine(line, { record, welcomed, newSecret, now: new Date().toISOString() });
    if (step.record !== record && !save(step.record)) return;
    welcomed = step.accepted;
    if (step.reply !== undefined) socket.write(`${step.reply}\n`);
  };
  const listen = async (onClose: () => void) => {
    const socket = await connectTo(files.channel);
    if (stopped) return socket.destroy();
    channel = socket;
    let pending = "";
    socket.setEncoding("utf8");
    socket.on("data", (text: string) => {
      const lines = `${pending}${text}`.split("\n");
      pending = (lines.pop() ?? "").slice(0, LONGEST_LINE);
      for (const line of lines) onLine(socket, line.slice(0, LONGEST_LINE));
    });
    socket.on("error", () => undefined);
    socket.on("close", onClose);
  };

  const run = async () => {
    while (!stopped && isAlive(options.process)) {
      const closed = Promise.withResolvers<void>();
      try {
        qmp = await connectQmp(files.qmp, { onEvent, onClose: closed.resolve });
        if (stopped) return qmp.close();
        void lookForPause();
        await listen(closed.resolve);
        await closed.promise;
      } catch (error) {
        options.log("no connection to QEMU", error);
      }
      qmp?.close();
      qmp = undefined;
      channel?.destroy();
      // QEMU closes its sockets a moment before it is gone.
      if (!stopped && isAlive(options.process)) await sleep(RETRY_MS);
    }
    if (!stopped) options.onGone(shutDown ? "guest_off" : "process_gone");
  };
  void run();

  return {
    send(line) {
      if (!welcomed || !channel?.writable) return false;
      channel.write(`${line}\n`);
      return true;
    },
    async resume() {
      if (!qmp) throw new Error("no connection to QEMU");
      await qmp.execute("cont");
    },
    async powerDown() {
      await qmp?.execute("system_powerdown");
    },
    stop() {
      stopped = true;
      qmp?.close();
      channel?.destroy();
    },
  };
}
