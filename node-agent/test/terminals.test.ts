// The agent's terminals with a real holder, a real PTY and a real shell of whoever runs the tests.

import { execFileSync, spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { closeSync, openSync, readdirSync, readFileSync, readlinkSync } from "node:fs";
import { MOST_INPUT_BYTES, SCROLLBACK_BYTES, WINDOW_BYTES } from "@holdfast/contracts/terminal/frames";
import { commandLine } from "@holdfast/kit/processes";
import { TaskFailed } from "@holdfast/tasks/executor";
import { describe, expect, it, onTestFinished } from "vitest";
import type { Launch } from "../src/drivers/pty/driver.ts";
import { commandOf } from "../src/drivers/pty/launch.ts";
import { ptyDriver } from "../src/drivers/pty/pty-driver.ts";
import { HostProblem } from "../src/identity/state-directory.ts";
import { directoryOf, findSockets, readGatewayNote } from "../src/terminals/directory.ts";
import { ask, isRunning, type TerminalHost, terminalHost } from "./support/terminals.ts";

async function failureOf(opening: Promise<unknown>): Promise<{ code: string; message: string }> {
  const error = await opening.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  if (!(error instanceof TaskFailed)) throw error ?? new Error("it was opened");
  return { code: error.code, message: error.message };
}

const holderOf = (host: TerminalHost, sessionId: string) => {
  const found = findSockets(host.stateDir).find((one) => one.kind === "shell" && one.sessionId === sessionId);
  if (found?.kind !== "shell") throw new Error("there is no holder");
  return found.holder.pid;
};

describe("a terminal", () => {
  it("TERM-03 is told to the gateway when its shell is up, and passes bytes both ways", async () => {
    const host = await terminalHost();
    const { stream, pid, sessionId } = await host.open();
    expect(stream.frames[0]).toMatchObject({ type: "hello", offset: 0 });
    expect(stream.headers).toMatchObject({ "x-correlation-id": `c-${sessionId}`, "x-holdfast-boot": "boot" });
    expect(await stream.attach()).toMatchObject({ offset: 0, replay: 0 });
    expect(await ask(stream, "echo $$")).toBe(String(pid));
    stream.type("exit 7\r");
    expect(await stream.frame("exit")).toEqual({ type: "exit", code: 7, signal: null });
    await expect.poll(() => host.sockets("shell")).toEqual([]);
    await expect.poll(() => stream.closed()).toBe(true);
    expect(host.terminals.count()).toBe(0);
    expect(host.failures).toEqual([]);
  });

  it("TERM-10 has the environment of a login and nothing of the agent's", async () => {
    const host = await terminalHost();
    const { stream, sessionId } = await host.open();
    await stream.attach();
    const seen = Object.fromEntries(
      (await ask(stream, "env")).split("\n").map((line) => line.split(/=(.*)/s, 2) as [string, string]),
    );
    const { name, home, shell } = host.user;
    expect(seen).toMatchObject({
      ...{ HOME: home, USER: name, LOGNAME: name, SHELL: shell, PWD: home },
      ...{ TERM: "xterm-256color", COLORTERM: "truecolor", HOLDFAST_SESSION_ID: sessionId },
    });
    expect(seen["LANG"]).toMatch(/utf-?8$/i);
    expect(Object.keys(seen).filter((key) => /^(VITEST|npm_|NODE_|HOLDFAST_(?!SESSION))/.test(key))).toEqual([]);
    expect(await ask(stream, "shopt -q login_shell && echo login")).toBe("login");
    expect(await ask(stream, "tty; [ -O $(tty) ] && echo mine")).toMatch(/^\/dev\/pts\/\d+\nmine$/);
    expect(await ask(stream, "grep -E '^Sig(Ign|Blk)' /proc/self/status | cut -f2 | sort -u")).toBe(
      "0".repeat(16),
    );
  });

  it("TERM-10 leaves no descriptor of the holder's to the shell", async () => {
    const host = await terminalHost();
    const { stream, pid } = await host.open();
    await stream.attach();
    await ask(stream, "echo its prompt is there");
    const open = readdirSync(`/proc/${pid}/fd`).map((fd) => readlinkSync(`/proc/${pid}/fd/${fd}`));
    expect(open.filter((target) => /^(socket:|anon_inode:|\/dev\/ptmx)/.test(target))).toEqual([]);
  });

  it("TERM-10 leaves neither a descriptor nor the umask of whoever started the agent to the shell", async () => {
    const inherited = openSync("/etc/passwd", "r");
    onTestFinished(() => closeSync(inherited));
    // Node.js itself looks after the first sixteen.
    const stdio = [...Array<"ignore">(24).fill("ignore"), inherited];
    const launch: Launch = ({ directory: cwd, ...holder }) => {
      const [file = "", ...args] = commandOf(holder);
      const umask = process.umask(0);
      spawn(file, args, { cwd, env: {}, detached: true, stdio }).unref();
      process.umask(umask);
      return { onFailure() {} };
    };
    const host = await terminalHost({ driver: { ...ptyDriver(), launch } });
    const { stream, pid } = await host.open();
    await stream.attach();
    expect(await ask(stream, "umask")).toBe("0022");
    const open = readdirSync(`/proc/${pid}/fd`).map((fd) => readlinkSync(`/proc/${pid}/fd/${fd}`));
    expect(open.filter((target) => !target.startsWith("/dev/pts/"))).toEqual([]);
  });

  it("TERM-10 has the size it was opened with, and any later one", async () => {
    const host = await terminalHost();
    const { stream } = await host.open({}, { size: { cols: 101, rows: 33 } });
    await stream.attach({ cols: 101, rows: 33 });
    expect(await ask(stream, "stty size")).toBe("33 101");
    stream.send({ type: "resize", cols: 132, rows: 50 });
    expect(await ask(stream, "stty size")).toBe("50 132");
    await stream.attach({ cols: 90, rows: 20 });
    expect(await ask(stream, "stty size")).toBe("20 90");
  });

  it("TERM-10 tells a program to draw again when somebody attaches with the same size", async () => {
    const host = await terminalHost();
    const { stream } = await host.open();
    await stream.attach();
    stream.type(`sh -c 'trap "echo dra"wn WINCH; echo dra""wing; while :; do sleep 0.05; done'\r`);
    await expect.poll(() => stream.text()).toMatch(/^drawing/m);
    await stream.attach();
    await expect.poll(() => stream.text()).toMatch(/^drawn/m);
    stream.type("\x03");
    expect(await ask(stream, "stty size")).toBe("24 80");
  });

  it.for([
    ["exit 0", { code: 0, signal: null }],
    ["exit 42", { code: 42, signal: null }],
    ["kill -9 $$", { code: null, signal: "SIGKILL" }],
    ["kill -TERM $$; kill -HUP $$", { code: null, signal: "SIGHUP" }],
  ] as const)("TERM-10 tells how its shell ended: %s", async ([command, exit]) => {
    const host = await terminalHost();
    const { stream } = await host.open();
    await stream.attach();
    stream.type(`${command}\r`);
    expect(await stream.frame("exit")).toEqual({ type: "exit", ...exit });
  });

  it("TERM-10 shows the last output of a shell before it tells its end", async () => {
    const host = await terminalHost();
    const { stream } = await host.open();
    await stream.attach();
    stream.type("seq 20000; echo the-very-last; exit\r");
    await stream.frame("exit");
    expect(stream.text().trimEnd()).toMatch(/\n20000\r\nthe-very-last(\r\nlogout)?$/);
  });

  it("TERM-10 passes UTF-8 and every byte unchanged", async () => {
    const host = await terminalHost();
    const { stream } = await host.open();
    await stream.attach();
    expect(await ask(stream, "echo 'grüße 🌊 日本語'")).toBe("grüße 🌊 日本語");
    stream.type(
      "stty raw -echo; printf 'go\\n'; head -c 256 | od -An -v -tu1 | tr -s ' \\n' ' '; stty sane; printf 'ov%s' er\r",
    );
    await expect.poll(() => stream.text()).toMatch(/go\n/);
    stream.type(Buffer.from(Array.from({ length: 256 }, (_, byte) => byte)));
    await expect.poll(() => stream.text()).toContain("over");
    expect(stream.text()).toContain(Array.from({ length: 256 }, (_, byte) => byte).join(" "));
  });

  it("TERM-10 takes a paste of a megabyte while the program prints as much", async () => {
    const host = await terminalHost();
    const { stream } = await host.open();
    await stream.attach();
    stream.acknowledgeAll();
    const line = `${"x".repeat(99)}\n`;
    const lines = 10_486;
    stream.type("stty -echo; printf 'be%s' gun; cat | tee /dev/tty | md5sum\r");
    await expect.poll(() => stream.text()).toContain("begun");
    const pasted = Buffer.from(line.repeat(lines));
    for (let at = 0; at < pasted.length; at += 300_000) stream.type(pasted.subarray(at, at + 300_000));
    stream.type("\x04");
    const digest = execFileSync("md5sum", { input: pasted, encoding: "utf8" }).split(" ")[0] ?? "";
    await expect.poll(() => stream.text().slice(-200)).toContain(digest);
    expect(stream.bytes()).toBeGreaterThan(pasted.length);
  });

  it("TERM-10 stops reading a program that writes more than is acknowledged, and says so once", async () => {
    const host = await terminalHost();
    const { stream } = await host.open();
    await stream.attach();
    stream.type("yes\r");
    const paused = await stream.frame("paused");
    expect(paused.unacknowledged).toBe(WINDOW_BYTES);
    await expect.poll(() => stream.bytes()).toBe(WINDOW_BYTES);
    stream.send({ type: "ack", bytes: 100_000 });
    await expect.poll(() => stream.bytes()).toBe(WINDOW_BYTES + 100_000);
    stream.send({ type: "ack", bytes: 10_000_000 }); // More than it ever sent: it has all, no more.
    await expect.poll(() => stream.bytes()).toBe(2 * WINDOW_BYTES + 100_000);
    stream.type("\x03");
    stream.acknowledgeAll();
    expect(await ask(stream, "echo still here")).toBe("still here");
    expect(stream.frames.filter((one) => one.type === "paused").length).toBeLessThanOrEqual(3);
  });

  it("TERM-10 lets a program write on while nobody is attached, and keeps the newest of it", async () => {
    const host = await terminalHost();
    const { stream } = await host.open();
    await stream.attach();
    stream.acknowledgeAll();
    await ask(stream, "echo begun");
    stream.send({ type: "detach" });
    stream.type("yes 'grüße' | head -n 200000; echo the-''end\r");
    await stream.attach({ from: 0 });
    await expect.poll(() => stream.text().slice(-300)).toContain("the-end\r\n");
    const again = await stream.attach();
    await expect.poll(() => stream.text().slice(-300)).toContain("the-end\r\n");
    expect(stream.bytes()).toBeLessThanOrEqual(SCROLLBACK_BYTES + 1000);
    expect(stream.bytes()).toBeGreaterThan(SCROLLBACK_BYTES - 1000);
    expect(again.replay).toBeGreaterThan(SCROLLBACK_BYTES - 1000);
    // Whole characters, from the first byte on.
    expect(stream.text()).not.toContain("\ufffd");
  });

  it("TERM-11 goes on exactly where a client had come to", async () => {
    const host = await terminalHost();
    const { stream } = await host.open();
    await stream.attach();
    expect(await ask(stream, "echo one")).toBe("one");
    const seen = stream.bytes();
    const before = Buffer.concat(stream.output);
    const all = await stream.attach({ from: 0 });
    expect(all.offset).toBe(0);
    // The shell may have shown its prompt since.
    expect(all.replay).toBeGreaterThanOrEqual(seen);
    await expect.poll(() => stream.bytes()).toBeGreaterThanOrEqual(seen);
    expect(Buffer.concat(stream.output).subarray(0, seen)).toEqual(before);
    expect(await stream.attach({ from: seen - 3 })).toMatchObject({ offset: seen - 3 });
    expect(await stream.attach({ from: 999_999_999 })).toMatchObject({ replay: 0 });
  });

  it("TERM-10 throws away input that a program does not read, and says so", async () => {
    const host = await terminalHost();
    const { stream } = await host.open();
    await stream.attach();
    await ask(stream, "stty raw -echo; echo ready");
    stream.type("sleep 300\r");
    const chunk = Buffer.alloc(1024 * 1024, "y");
    for (let sent = 0; sent <= MOST_INPUT_BYTES; sent += chunk.length) stream.type(chunk);
    const { code, message } = await stream.frame("error");
    expect(code).toBe("terminal_input_overflow");
    // What the terminal itself holds was not discarded.
    const [, discarded] = /: (\d+) bytes that waited for it were discarded/.exec(message) ?? [];
    expect(Number(discarded)).toBeGreaterThan(MOST_INPUT_BYTES);
    expect(Number(discarded)).toBeLessThanOrEqual(MOST_INPUT_BYTES + chunk.length);
  });

  it("TERM-10 ends the shell and what it runs when it is closed", async () => {
    const host = await terminalHost();
    const { stream, pid } = await host.open();
    await stream.attach();
    stream.type("sleep 4242\r");
    const sleeping = () => spawnedBy(pid).find((one) => commandLine(one) === "sleep 4242");
    await expect.poll(sleeping).toBeDefined();
    const child = sleeping() ?? 0;
    stream.send({ type: "close", reason: "asked" });
    expect(await stream.frame("exit")).toMatchObject({ type: "exit" });
    await expect.poll(() => isRunning(pid) || isRunning(child)).toBe(false);
    await expect.poll(() => host.sockets("shell")).toEqual([]);
  });

  it("TERM-10 is told again to end when its shell has not heard it, before it is killed", async () => {
    const host = await terminalHost();
    const { stream } = await host.open();
    await stream.attach();
    stream.type(`exec sh -c 'trap "trap - HUP" HUP; echo de""af; while :; do sleep 0.05; done'\r`);
    await expect.poll(() => stream.text()).toMatch(/^deaf/m);
    stream.send({ type: "close", reason: "asked" });
    expect(await stream.frame("exit")).toEqual({ type: "exit", code: null, signal: "SIGHUP" });
  });
});

function spawnedBy(pid: number): number[] {
  return readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim().split(" ").filter(Boolean).map(Number);
}

describe("a terminal whose way breaks", () => {
  it("TERM-11 finds its shell again after the stream was lost", async () => {
    const host = await terminalHost();
    const { stream, sessionId, pid } = await host.open();
    await stream.attach();
    await ask(stream, "kept=treasure");
    stream.drop();
    const next = await host.gateway.stream(sessionId, stream);
    const hello = await next.frame("hello");
    expect(hello.end).toBeGreaterThan(0);
    await next.attach({ from: hello.end });
    expect(await ask(next, "echo $$ $kept")).toBe(`${pid} treasure`);
  });

  it("TERM-10 leaves a gateway that stops answering, and dials again", async () => {
    const host = await terminalHost();
    const { stream, sessionId, pid } = await host.open();
    stream.hang();
    const next = await host.gateway.stream(sessionId, stream);
    await next.attach();
    expect(await ask(next, "echo $$")).toBe(String(pid));
  });

  it("TERM-11 finds it again after the gateway was away for a while, and resumes TLS", async () => {
    const host = await terminalHost();
    const { stream, sessionId, pid } = await host.open();
    await host.gateway.stop();
    await expect.poll(() => readGatewayNote(host.stateDir)?.reached).toBe(false);
    await expect.poll(() => host.retries.length).toBeGreaterThan(0);
    expect(host.retries[0]).toMatchObject({ code: "terminal_node_stream_timeout" });
    await host.gateway.start();
    const next = await host.gateway.stream(sessionId, stream);
    await next.attach();
    expect(await ask(next, "echo $$")).toBe(String(pid));
    next.drop();
    await expect.poll(() => host.gateway.streams.at(-1)?.resumed).toBe(true);
    expect(readGatewayNote(host.stateDir)).toMatchObject({ reached: true, url: host.gateway.url });
  });

  it("TERM-11 is the same shell after the agent was started again", async () => {
    const host = await terminalHost();
    const { stream, sessionId, pid } = await host.open();
    await stream.attach();
    await ask(stream, "kept=treasure");
    await host.restart();
    const next = await host.gateway.stream(sessionId, stream);
    expect(next.headers["x-correlation-id"]).toBe(`c-${sessionId}`);
    await next.attach();
    await expect.poll(() => next.text()).toContain("treasure");
    expect(await ask(next, "echo $$ $kept")).toBe(`${pid} treasure`);
  });

  it("TERM-11 tells the end of a shell that ended meanwhile, after its output", async () => {
    const host = await terminalHost();
    const { stream, sessionId } = await host.open();
    await stream.attach();
    // Before its first prompt bash may forget the signal.
    await ask(stream, "echo its prompt is there");
    await host.gateway.stop();
    const holder = holderOf(host, sessionId);
    execFileSync("kill", ["-HUP", String(spawnedBy(holder)[0])]);
    await expect.poll(() => spawnedBy(holder)).toEqual([]);
    await host.gateway.start();
    const next = await host.gateway.stream(sessionId, stream);
    await next.frame("hello");
    await next.attach();
    expect(await next.frame("exit")).toEqual({ type: "exit", code: null, signal: "SIGHUP" });
    await expect.poll(() => isRunning(holder)).toBe(false);
  });

  it("TERM-11 ends when the gateway does not know it any more", async () => {
    const host = await terminalHost();
    const { stream, pid } = await host.open();
    const body = JSON.stringify({ code: "terminal_session_unknown", message: "It has ended." });
    host.gateway.refuse = () => ({ status: 404, body });
    stream.close();
    await expect.poll(() => isRunning(pid)).toBe(false);
    await expect.poll(() => host.terminals.count()).toBe(0);
  });

  it("TERM-11 ends when there was no way for as long as there may be none", async () => {
    const host = await terminalHost();
    const { pid } = await host.open({}, { detachedMs: 400 });
    await host.gateway.stop();
    await expect.poll(() => isRunning(pid)).toBe(false);
    expect(host.failures).toMatchObject([{ code: "terminal_stream_lost" }]);
  });

  it("TERM-11 ends by itself when no agent comes for it", async () => {
    const host = await terminalHost();
    const { pid, sessionId } = await host.open({}, { detachedMs: 300 });
    const holder = holderOf(host, sessionId);
    host.terminals.stop();
    await expect.poll(() => isRunning(pid) || isRunning(holder)).toBe(false);
    await host.restart();
    expect(host.sockets("shell")).toEqual([]);
  });

  it("TERM-11 finds it again after a gateway that took the connection and never answered", async () => {
    const host = await terminalHost();
    const { stream, sessionId } = await host.open();
    let unanswered = 0;
    host.gateway.refuse = () => {
      unanswered += 1;
      return "silence";
    };
    stream.drop();
    await expect.poll(() => unanswered).toBe(1);
    host.gateway.refuse = () => undefined;
    const again = await host.gateway.stream(sessionId, stream);
    await again.frame("hello");
  });

  it("TERM-06 a holder that its user stopped ends when its stream was lost, too", async () => {
    const host = await terminalHost();
    const { stream, sessionId, pid } = await host.open({}, { detachedMs: 1_000 });
    const holder = holderOf(host, sessionId);
    process.kill(holder, "SIGSTOP");
    stream.drop();
    await expect.poll(() => host.terminals.count(), { timeout: 30_000 }).toBe(0);
    await expect.poll(() => isRunning(pid) || isRunning(holder)).toBe(false);
    await expect.poll(() => host.gateway.streams.every((one) => one.closed())).toBe(true);
  });

  it("TERM-06 says that its holder was ended", async () => {
    const host = await terminalHost();
    const { stream, sessionId, pid } = await host.open();
    process.kill(holderOf(host, sessionId), "SIGKILL");
    expect(await stream.frame("error")).toMatchObject({ code: "terminal_pty_failed" });
    await expect.poll(() => isRunning(pid)).toBe(false);
    await expect.poll(() => host.sockets("shell")).toEqual([]);
    expect(host.failures).toMatchObject([{ code: "terminal_pty_failed" }]);
  });

  it("TERM-06 a holder that its user stopped is ended all the same", async () => {
    const host = await terminalHost();
    const { sessionId, pid } = await host.open();
    const holder = holderOf(host, sessionId);
    process.kill(holder, "SIGSTOP");
    await host.terminals.endAll();
    await expect.poll(() => isRunning(holder) || isRunning(pid)).toBe(false);
    expect(host.sockets("shell")).toEqual([]);
  });

  it("TERM-06 a holder that its user stopped is not left by an agent that starts", async () => {
    const host = await terminalHost();
    const { sessionId, pid } = await host.open();
    const holder = holderOf(host, sessionId);
    process.kill(holder, "SIGSTOP");
    await host.restart({ answerMs: 500 });
    await expect.poll(() => isRunning(holder) || isRunning(pid)).toBe(false);
    expect(host.sockets("shell")).toEqual([]);
  });

  it("ID-09 all end when the node is revoked", async () => {
    const host = await terminalHost();
    const opened = await Promise.all([host.open(), host.open(), host.open()]);
    await host.terminals.endAll();
    for (const { pid } of opened) await expect.poll(() => isRunning(pid)).toBe(false);
    expect(host.terminals.count()).toBe(0);
  });
});

describe("a terminal that cannot be opened", () => {
  it("TERM-05 AGENT-01 because nobody listens at the gateway's address", async () => {
    const host = await terminalHost();
    await host.gateway.stop();
    const failure = await failureOf(host.open());
    expect(failure.code).toBe("terminal_node_stream_timeout");
    expect(failure.message).toContain("ECONNREFUSED");
    expect(host.retries.map(({ code }) => code)).toEqual([failure.code, failure.code]);
    await expect.poll(() => host.sockets("shell")).toEqual([]);
    expect(readGatewayNote(host.stateDir)).toMatchObject({ reached: false });
  });

  it("TERM-05 because the gateway does not answer in time", async () => {
    const host = await terminalHost();
    host.gateway.refuse = () => "silence";
    const failure = await failureOf(host.open({}, { withinMs: 1_600 }));
    expect(failure.code).toBe("terminal_node_stream_timeout");
    await expect.poll(() => host.sockets("shell")).toEqual([]);
  });

  it.for([
    [401, "identity_revoked", "terminal_node_stream_mtls_failed"],
    [401, "certificate_missing", "terminal_node_stream_mtls_failed"],
    [401, "cert_expired", "terminal_node_stream_mtls_failed"],
    [404, "terminal_session_unknown", "terminal_session_unknown"],
    [404, "route_not_found", "terminal_env_profile_drift"],
    [503, "service_unavailable", "terminal_node_stream_timeout"],
    [502, undefined, "terminal_env_profile_drift"],
  ] as const)("TERM-04 because the gateway says %s %s", async ([status, code, expected]) => {
    const host = await terminalHost();
    const body = code ? JSON.stringify({ code, message: "No." }) : "<h1>Bad gateway</h1>";
    host.gateway.refuse = () => ({ status, body });
    expect((await failureOf(host.open())).code).toBe(expected);
  });

  it("TERM-12 because another listener of the installation answers at the gateway's address", async () => {
    const host = await terminalHost();
    const body = JSON.stringify({ code: "certificate_missing", message: "No." });
    host.gateway.refuse = () => ({ status: 401, body, isOther: true });
    const { code, message } = await failureOf(host.open());
    expect(code).toBe("terminal_env_profile_drift");
    expect(message).toContain("is not the terminal gateway");
  });

  it("TERM-04 because the gateway refused it, which is told before the shell that was there has ended", async () => {
    const host = await terminalHost();
    const sessionId = randomUUID();
    const body = JSON.stringify({ code: "certificate_missing", message: "No." });
    host.gateway.refuse = async () => {
      await expect.poll(() => spawnedBy(holderOf(host, sessionId)), { interval: 5 }).toHaveLength(1);
      process.kill(holderOf(host, sessionId), "SIGSTOP");
      return { status: 401, body };
    };
    expect((await failureOf(host.open({}, { sessionId }))).code).toBe("terminal_node_stream_mtls_failed");
    const holder = holderOf(host, sessionId);
    process.kill(holder, "SIGKILL");
    await expect.poll(() => isRunning(holder)).toBe(false);
    await expect.poll(() => host.sockets("shell")).toEqual([]);
  });

  it("TERM-12 because the profile names no gateway, or this host is set to another one", async () => {
    const none = await terminalHost({ gateway: () => ({ configured: undefined, offered: undefined }) });
    expect((await failureOf(none.open())).code).toBe("terminal_env_profile_drift");
    const offered = "https://gateway.example.com:18443";
    const other = await terminalHost({ gateway: () => ({ configured: "https://127.0.0.1:1", offered }) });
    const failure = await failureOf(other.open());
    expect(failure.code).toBe("terminal_env_profile_drift");
    expect(failure.message).toContain(offered);
  });

  it("TERM-12 because another server answers at the address", async () => {
    const [host, foreign] = [await terminalHost(), await terminalHost()];
    const astray = await terminalHost({
      gateway: () => ({ configured: undefined, offered: foreign.gateway.url }),
    });
    expect((await failureOf(astray.open())).code).toBe("terminal_env_profile_drift");
    expect(host.failures).toEqual([]);
  });

  it.for([
    ["its shell is missing", { shell: "/bin/no-such-shell" }, /shell \/bin\/no-such-shell cannot be run: ENOENT/],
    ["its shell is no login shell", { shell: "/bin/true" }, /shell \/bin\/true is not meant for people/],
    ["its home is missing", { home: "/no/such/home" }, /home \/no\/such\/home .* cannot be entered: ENOENT/],
    ["its home is a file", { home: "/etc/passwd" }, /home .* cannot be entered: ENOTDIR/],
  ] as const)("TERM-06 because %s", async ([, user, message]) => {
    const host = await terminalHost();
    const failure = await failureOf(host.open(user));
    expect(failure.code).toBe("terminal_pty_failed");
    expect(failure.message).toMatch(message);
    await expect.poll(() => host.sockets("shell")).toEqual([]);
    expect(host.gateway.streams.every((one) => one.frames.length === 0)).toBe(true);
  });

  it("TERM-06 because its user cannot be found", async () => {
    const host = await terminalHost();
    const user = () => Promise.reject(new TaskFailed("terminal_pty_failed", "There is no user ada on this node."));
    expect(await failureOf(host.open({}, { user }))).toMatchObject({
      message: "There is no user ada on this node.",
    });
    await expect.poll(() => host.sockets("shell")).toEqual([]);
  });

  it("TERM-06 because no holder starts", async () => {
    const launch: Launch = () => ({ onFailure: (tell) => setImmediate(() => tell("spawn EAGAIN")) });
    const host = await terminalHost({ driver: { ...ptyDriver(), launch } });
    const failure = await failureOf(host.open());
    expect(failure).toMatchObject({ code: "terminal_pty_failed", message: expect.stringContaining("EAGAIN") });
  });

  it("TERM-06 because the shell is not up in time", async () => {
    const launch: Launch = () => ({ onFailure() {} });
    const host = await terminalHost({ driver: { ...ptyDriver(), launch } });
    const failure = await failureOf(host.open({}, { withinMs: 1_600 }));
    expect(failure).toEqual({ code: "terminal_pty_failed", message: "The shell did not start in time." });
  });

  it("TERM-04 because this host has no identity to show", async () => {
    const credentials = () => {
      throw new HostProblem("identity_key_missing", "There is no key.");
    };
    const host = await terminalHost({ credentials });
    expect((await failureOf(host.open())).code).toBe("terminal_node_stream_mtls_failed");
  });

  it("TASK-09 because it was cancelled: neither shell nor stream stays", async () => {
    const host = await terminalHost();
    host.gateway.refuse = () => "silence";
    const cancel = new AbortController();
    const opening = host.open({}, { signal: cancel.signal });
    await expect.poll(() => host.sockets("shell")).toHaveLength(1);
    cancel.abort(new Error("cancelled"));
    await expect(opening).rejects.toThrow("cancelled");
    await expect.poll(() => host.sockets("shell")).toEqual([]);
  });
});

describe("holders", () => {
  it("TERM-03 one is kept ready after the first terminal, and taken for the next", async () => {
    const host = await terminalHost();
    expect(host.sockets()).toEqual([]);
    await host.open();
    await expect.poll(() => host.sockets("spare")).toHaveLength(1);
    const [spare] = host.sockets("spare");
    await host.open();
    expect(host.sockets("spare")).not.toContain(spare);
    await expect.poll(() => host.sockets("spare")).toHaveLength(1);
    host.terminals.stop();
    await expect.poll(() => host.sockets("spare")).toEqual([]);
    await host.restart();
  });

  it("TERM-03 one that is still starting when the agent stops goes as well", async () => {
    const waiting: Parameters<Launch>[0][] = [];
    let launched = 0;
    const launch: Launch = (holder) => {
      launched += 1;
      if (launched === 1) return ptyDriver().launch(holder);
      waiting.push(holder);
      return { onFailure() {} };
    };
    const host = await terminalHost({ driver: { ...ptyDriver(), launch } });
    await host.open();
    await expect.poll(() => waiting.length).toBe(1);
    host.terminals.stop();
    const [{ directory, ...spare } = { directory: "", id: "", orphanSeconds: 0 }] = waiting;
    const [file = "", ...args] = commandOf(spare);
    const holder = spawn(file, args, { cwd: directory, stdio: "ignore" });
    expect(await once(holder, "exit")).toEqual([0, null]);
    await expect.poll(() => host.sockets("spare")).toEqual([]);
    await host.restart({ driver: ptyDriver() });
  });

  it("TERM-03 the one that is kept ready goes some time after the last terminal", async () => {
    const host = await terminalHost({ keepSpareMs: 1_000 });
    const { stream } = await host.open();
    await expect.poll(() => host.sockets("spare")).toHaveLength(1);
    stream.send({ type: "close", reason: "asked" });
    await expect.poll(() => host.sockets().filter((name) => name !== "gateway.json")).toEqual([]);
  });

  it("TERM-03 a spare that was left by a killed agent is used, and one without a process cleared away", async () => {
    const host = await terminalHost();
    const directory = directoryOf(host.stateDir);
    const [file = "", ...args] = commandOf({ id: "11111111-2222-4333-8444-555555555555", orphanSeconds: 60 });
    const left = spawn(file, args, { cwd: directory, stdio: "ignore" });
    await expect.poll(() => host.sockets("spare")).toHaveLength(1);
    await host.restart();
    const { sessionId } = await host.open();
    expect(holderOf(host, sessionId)).toBe(left.pid);
    left.kill("SIGKILL");
    await once(left, "exit");
    await expect.poll(() => host.sockets("shell")).toEqual([]);
  });

  it("TERM-03 nobody but the agent's user can reach their sockets", async () => {
    const host = await terminalHost();
    await host.open();
    const directory = directoryOf(host.stateDir);
    const modes = execFileSync("stat", [
      "-c",
      "%a %U",
      directory,
      ...host.sockets().map((name) => `${directory}/${name}`),
    ]);
    expect(
      modes
        .toString()
        .trim()
        .split("\n")
        .every((line) => /^[76]00 /.test(line)),
    ).toBe(true);
  });

  it("TERM-03 200 terminals, opened and dropped, leave nothing behind", { timeout: 300_000 }, async () => {
    const host = await terminalHost();
    const pids: number[] = [];
    const body = JSON.stringify({ code: "terminal_session_unknown", message: "It has ended." });
    for (let round = 0; round < 20; round += 1) {
      host.gateway.refuse = () => undefined;
      const opened = await Promise.all(Array.from({ length: 10 }, () => host.open()));
      pids.push(...opened.flatMap(({ pid, sessionId }) => [pid, holderOf(host, sessionId)]));
      host.gateway.refuse = () => ({ status: 404, body });
      for (const { stream } of opened) stream.drop();
      await expect.poll(() => host.terminals.count()).toBe(0);
    }
    await expect.poll(() => pids.filter(isRunning)).toEqual([]);
    host.terminals.stop();
    await expect.poll(() => host.sockets().filter((name) => name !== "gateway.json")).toEqual([]);
    await host.restart();
  });
});
