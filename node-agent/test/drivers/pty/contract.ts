// What every PTY driver owes to the agent's terminals, as checks that can be run against any implementation: the real
// one, and the faulty one that proves that the checks can fail. Every wait is bounded by the check's own deadline.

import { randomUUID } from "node:crypto";
import { existsSync } from "node:fs";
import { userInfo } from "node:os";
import { join } from "node:path";
import { identify, isAlive, type ProcessIdentity, signalIfAlive } from "@holdfast/kit/processes";
import { expect } from "vitest";
import { scratchDirectory } from "../../../../testkit/agent/scratch.ts";
import { atEnd } from "../../../../testkit/lifetime/at-end.ts";
import type { Description, HolderConnection, Orders, PtyDriver } from "../../../src/drivers/pty/driver.ts";
import type { Control } from "../../../src/drivers/pty/messages.mjs";

export type ContractCheck = { name: string; check: (bench: Bench) => Promise<void> };

/** A driver with a directory of its own, and a deadline for each thing that is waited for. */
export type Bench = { driver: PtyDriver; directory: string; withinMs: number };

type Holder = { connection: HolderConnection; path: string; id: string; process: ProcessIdentity };
type Shell = Holder & { kept: Description & { type: "shell" }; received: Received };
type Received = { text: () => string; controls: Control[]; gone: () => boolean };

const LIMITS = { window: 64 * 1024, scrollback: 64 * 1024, input: 64 * 1024 };

export const ptyContract: ContractCheck[] = [
  {
    name: "a holder becomes ready, says that it is spare, and is the process that it names",
    async check(bench) {
      const { connection, process } = await startHolder(bench);
      expect(connection.first).toEqual({ type: "spare", pid: process.pid });
      expect(isAlive(process)).toBe(true);
    },
  },
  {
    name: "a holder that cannot start reports why",
    async check(bench) {
      const directory = join(bench.directory, "missing");
      const failed = Promise.withResolvers<string>();
      bench.driver.launch({ id: randomUUID(), directory, orphanSeconds: 60 }).onFailure(failed.resolve);
      expect(await within(bench, failed.promise, "a report of the failure")).not.toBe("");
    },
  },
  {
    name: "connecting where nobody listens is refused",
    async check({ driver, directory, withinMs }) {
      await expect(driver.connect(join(directory, "nobody.spare"), withinMs)).rejects.toThrow();
    },
  },
  {
    name: "a shell runs as its orders say, reads its input and writes its output",
    async check(bench) {
      const shell = await startShell(bench);
      expect(shell.kept).toMatchObject({ offset: 0, orphanMs: 60_000 });
      expect(await ask(bench, shell, "echo $HOLDFAST_SESSION_ID-$((6 * 7))")).toBe("session-42");
      expect(Number(await ask(bench, shell, "echo $$"))).toBe(shell.kept.pid);
    },
  },
  {
    name: "a shell that cannot be run is refused in words, and its holder ends",
    async check(bench) {
      const holder = await startHolder(bench);
      const user = { ...me(), shell: "/nonexistent/shell" };
      const refusal = holder.connection.become({ ...orders(), user });
      await expect(within(bench, refusal, "a refusal")).rejects.toThrow("/nonexistent/shell");
      await until(bench, () => !isAlive(holder.process), "the end of the holder");
    },
  },
  {
    name: "the size of the terminal follows",
    async check(bench) {
      const shell = await startShell(bench);
      shell.connection.send({ type: "resize", cols: 101, rows: 33 });
      await until(bench, async () => (await ask(bench, shell, "stty size")) === "33 101", "the new size");
    },
  },
  {
    name: "output keeps its order and is complete",
    async check(bench) {
      const shell = await startShell(bench);
      const lines = (await ask(bench, shell, "seq 2000")).split("\n");
      expect(lines).toEqual(Array.from({ length: 2000 }, (_, line) => `${line + 1}`));
    },
  },
  {
    name: "a shell goes on without an agent, and the next one finds it with its notes and its output",
    async check(bench) {
      const shell = await startShell(bench);
      await ask(bench, shell, "echo before; hidden=kept");
      shell.connection.leave();
      const connection = await bench.driver.connect(shell.path, bench.withinMs);
      expect(connection.first).toMatchObject({ type: "shell", pid: shell.kept.pid, notes: { note: "n" } });
      const again = { ...shell, connection, received: listen(connection) };
      attach(again);
      await until(bench, () => again.received.text().includes("before"), "the earlier output");
      expect(await ask(bench, again, "echo $hidden")).toBe("kept");
    },
  },
  {
    name: "the newest connection is the agent's, and the one before is closed",
    async check(bench) {
      const shell = await startShell(bench);
      const connection = await bench.driver.connect(shell.path, bench.withinMs);
      await until(bench, shell.received.gone, "the end of the first connection");
      expect(await ask(bench, { ...shell, connection, received: attached(connection) }, "echo new")).toBe("new");
    },
  },
  {
    name: "it describes itself when it is asked",
    async check(bench) {
      const shell = await startShell(bench);
      await ask(bench, shell, "echo some output");
      const { pid, end } = await shell.connection.describe(bench.withinMs);
      expect(pid).toBe(shell.kept.pid);
      expect(end).toBeGreaterThan(0);
    },
  },
  {
    name: "the end of the shell is reported with its code, and the holder exits once that is acknowledged",
    async check(bench) {
      const shell = await startShell(bench);
      shell.connection.sendBytes(Buffer.from("exit 7\r"), LIMITS.input);
      const exit = () => shell.received.controls.find(({ type }) => type === "exit");
      await until(bench, () => exit() !== undefined, "the exit");
      expect(exit()).toMatchObject({ code: 7 });
      expect(isAlive(shell.process)).toBe(true);
      shell.connection.send({ type: "done" });
      await until(bench, () => !isAlive(shell.process) && shell.received.gone(), "the end of the holder");
    },
  },
  {
    name: "a shell that is closed ends, with what runs in it",
    async check(bench) {
      const shell = await startShell(bench);
      shell.connection.sendBytes(Buffer.from("sleep 1000\r"), LIMITS.input);
      await until(bench, () => shell.received.text().includes("sleep 1000"), "the program");
      shell.connection.send({ type: "close" });
      await until(bench, () => shell.received.controls.some(({ type }) => type === "exit"), "the exit");
      expect(identify(shell.kept.pid)).toBeUndefined();
    },
  },
];

async function startHolder(bench: Bench): Promise<Holder> {
  const { driver, directory } = bench;
  const id = randomUUID();
  const failed = Promise.withResolvers<never>();
  failed.promise.catch(() => {});
  driver.launch({ id, directory, orphanSeconds: 60 }).onFailure((why) => failed.reject(new Error(why)));
  const path = join(directory, `${id}.spare`);
  await Promise.race([failed.promise, until(bench, () => existsSync(path), "a holder that is ready")]);
  const connection = await driver.connect(path, bench.withinMs);
  const process = identify(connection.first.pid);
  if (!process) throw new Error(`there is no process ${connection.first.pid}`);
  atEnd(() => signalIfAlive(process, "SIGKILL"));
  return { connection, path, id, process };
}

async function startShell(bench: Bench): Promise<Shell> {
  const holder = await startHolder(bench);
  const received = listen(holder.connection);
  const kept = await within(bench, holder.connection.become(orders()), "the shell");
  const shell = { ...holder, kept, received };
  attach(shell);
  return shell;
}

function attach({ connection }: Pick<Shell, "connection">): void {
  connection.send({ type: "attach", attachment: 1, from: null, cols: 80, rows: 24 });
}

function attached(connection: HolderConnection): Received {
  const received = listen(connection);
  attach({ connection });
  return received;
}

function listen(connection: HolderConnection): Received {
  const bytes: Buffer[] = [];
  const controls: Control[] = [];
  let gone = false;
  let received = 0;
  connection.listen({
    onBytes(piece) {
      bytes.push(Buffer.from(piece));
      received += piece.length;
      connection.send({ type: "ack", bytes: received });
    },
    onControl: (message) => void controls.push(message),
    onGone: () => {
      gone = true;
    },
  });
  return { text: () => Buffer.concat(bytes).toString(), controls, gone: () => gone };
}

/** What a command writes, between marks that the echo of the command does not have. */
async function ask(bench: Bench, shell: Pick<Shell, "connection" | "received">, command: string): Promise<string> {
  const mark = randomUUID().slice(0, 8);
  const line = `printf '<%s>' ${mark}; ${command}; printf '</%s>' ${mark}\r`;
  shell.connection.sendBytes(Buffer.from(line), LIMITS.input);
  const pattern = new RegExp(`<${mark}>([\\s\\S]*?)</${mark}>`);
  await until(bench, () => pattern.test(shell.received.text()), `an answer to ${command}`);
  return (pattern.exec(shell.received.text())?.[1] ?? "").replaceAll("\r\n", "\n").trim();
}

function me(): Orders["user"] {
  const { username, uid, gid } = userInfo();
  return { name: username, uid, gid, home: scratchDirectory(), shell: "/bin/sh" };
}

function orders(): Orders {
  return {
    user: me(),
    env: { PATH: "/usr/bin:/bin", TERM: "dumb", HOLDFAST_SESSION_ID: "session" },
    size: { cols: 80, rows: 24 },
    orphanMs: 60_000,
    limits: LIMITS,
    notes: { note: "n" },
    confinement: { directories: [], cgroups: [] },
  };
}

async function until(bench: Bench, condition: () => boolean | Promise<boolean>, what: string): Promise<void> {
  await expect
    .poll(condition, { timeout: bench.withinMs, interval: 10, message: `${what} did not come` })
    .toBe(true);
}

function within<T>({ withinMs }: Bench, promise: Promise<T>, what: string): Promise<T> {
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(() => late.reject(new Error(`${what} did not come`)), withinMs);
  return Promise.race([promise, late.promise]).finally(() => clearTimeout(timer));
}
