// Facts about real processes: alive, ended, zombie, and who holds a port.

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer, type Server } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import { commandLine, holderOfPort, identify, isAlive } from "../src/processes.ts";

const children: ChildProcess[] = [];
afterEach(async () => {
  for (const child of children.splice(0)) {
    if (child.exitCode !== null || child.signalCode !== null) continue;
    child.kill("SIGKILL");
    await once(child, "exit");
  }
});

function start(command: string, args: string[]): ChildProcess & { pid: number } {
  const child = spawn(command, args, { stdio: ["pipe", "pipe", "inherit"] });
  children.push(child);
  if (child.pid === undefined) throw new Error(`${command} did not start`);
  return child as ChildProcess & { pid: number };
}

async function printed(child: ChildProcess): Promise<string> {
  const [chunk] = await once(child.stdout as NodeJS.ReadableStream, "data");
  return String(chunk).trim();
}

describe("identify", () => {
  it("knows a living process and says when it has ended", async () => {
    const child = start("cat", []);
    const identity = identify(child.pid);
    expect(identity).toMatchObject({ pid: child.pid, startTicks: expect.stringMatching(/^\d+$/) });
    expect(identity && isAlive(identity)).toBe(true);
    child.kill("SIGKILL");
    await once(child, "exit");
    expect(identify(child.pid)).toBeUndefined();
    expect(identity && isAlive(identity)).toBe(false);
  });

  it("does not take another process with the same pid for the one it knew", () => {
    const child = start("cat", []);
    expect(isAlive({ pid: child.pid, startTicks: "1" })).toBe(false);
  });

  it("takes a zombie for ended", async () => {
    // The shell starts a child, then becomes `cat`, which never collects it.
    const parent = start("sh", ["-c", "sleep 60 & echo $!; exec cat"]);
    const zombie = Number(await printed(parent));
    const parentName = () => readFileSync(`/proc/${parent.pid}/comm`, "utf8").trim();
    while (parentName() !== "cat") await new Promise(setImmediate);
    process.kill(zombie, "SIGKILL");
    const state = () => /\) (\w) /.exec(readFileSync(`/proc/${zombie}/stat`, "utf8"))?.[1];
    while (state() !== "Z") await new Promise(setImmediate);
    expect(identify(zombie)).toBeUndefined();
  });

  it("is not confused by a command name with spaces and parentheses", async () => {
    const child = start(process.execPath, [
      "-e",
      "process.title = 'a) Z 1 (b'; console.log(1); process.stdin.resume()",
    ]);
    await printed(child);
    const identity = identify(child.pid);
    expect(identity?.startTicks).toMatch(/^\d{3,}$/);
    expect(identity && isAlive(identity)).toBe(true);
  });
});

describe("commandLine", () => {
  it("shows what ps would show", () => {
    const child = start("sleep", ["1000"]);
    expect(commandLine(child.pid)).toBe("sleep 1000");
    expect(commandLine(2 ** 30)).toBeUndefined();
  });
});

describe("holderOfPort", () => {
  it.for(["127.0.0.1", "::1"])("names the process that listens on %s", async (host) => {
    const server = await listen(host);
    const { port } = server.address() as { port: number };
    expect(holderOfPort(port)).toEqual({ pid: process.pid, command: commandLine(process.pid) });
    await new Promise((resolve) => server.close(resolve));
    expect(holderOfPort(port)).toBeUndefined();
  });

  it("names another process, with its command", async () => {
    const script =
      "require('net').createServer().listen(0, '127.0.0.1', function () { console.log(this.address().port) })";
    const child = start(process.execPath, ["-e", script]);
    const holder = holderOfPort(Number(await printed(child)));
    expect(holder?.pid).toBe(child.pid);
    expect(holder?.command).toContain("createServer");
  });

  it("does not take a connection's own port for a listener", async () => {
    const server = await listen("127.0.0.1");
    const { port } = server.address() as { port: number };
    const client = (await import("node:net")).connect(port, "127.0.0.1");
    await once(client, "connect");
    expect(holderOfPort(client.localPort ?? 0)).toBeUndefined();
    client.destroy();
    await new Promise((resolve) => server.close(resolve));
  });
});

async function listen(host: string): Promise<Server> {
  const server = createServer();
  server.listen(0, host);
  await once(server, "listening");
  return server;
}
