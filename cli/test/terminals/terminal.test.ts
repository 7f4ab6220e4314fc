// A shell on a node from the command line: whole processes, real mutual TLS, a real PTY, a real user.

import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import type { TerminalSession } from "@holdfast/contracts/endpoints/terminals";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { lacks } from "../../../scripts/facilities.mjs";
import { until } from "../../../testkit/processes/holdfast.ts";
import { ask, hangChild, killChild, openShells, type Shells, untilItAnswers } from "../support/shells.ts";

const sha256 = (bytes: Buffer | string) => createHash("sha256").update(bytes).digest("hex");

describe.skipIf(lacks("root"))("holdfast terminal", () => {
  let shells: Shells;
  beforeAll(async () => {
    shells = await openShells();
  });
  afterAll(() => shells.cleanUp());

  /** Once the api has heard from the gateway that it is open. */
  const newest = async (): Promise<TerminalSession | undefined> => {
    await until(async () => (await shells.terminals())[0]?.state === "open");
    return (await shells.terminals())[0];
  };

  it("TERM-06 is a shell of the allocation's user, at home, and ends with the shell's exit code", async () => {
    const tty = await shells.atShell();
    expect(tty.shown()).toContain("Connecting to");
    expect(await ask(tty, "id -un")).toBe(shells.allocation.username);
    expect(await ask(tty, "pwd")).toBe(shells.allocation.home);
    expect(await ask(tty, "echo $TERM; tty")).toMatch(/^xterm-256color \/dev\/pts\/\d+$/);
    tty.type("exit 7\r");
    expect(await tty.ended).toEqual({ code: 7, signal: null });
  });

  it("TERM-10 tells the shell its size, also when it changes", async () => {
    const tty = await shells.atShell();
    expect(await ask(tty, "stty size")).toBe("30 90");
    tty.resize(123, 45);
    await until(async () => (await ask(tty, "stty size")) === "45 123");
    tty.type("exit\r");
    expect(await tty.ended).toMatchObject({ code: 0 });
  });

  it("TERM-10 carries UTF-8 and control keys both ways", async () => {
    const tty = await shells.atShell();
    expect(await ask(tty, "echo 'grüße 🐙 你好' | rev")).toBe("好你 🐙 eßürg");
    tty.type("echo wait''ing; sleep 1000\r");
    await tty.sees("waiting");
    tty.type("\x03");
    expect(await ask(tty, "echo interrupted")).toBe("interrupted");
    tty.type("\x04");
    expect(await tty.ended).toMatchObject({ code: 0 });
  });

  it("TERM-10 takes a paste of a megabyte whole", async () => {
    const lines = Array.from({ length: 16_384 }, (_, index) => `${String(index).padStart(62, "0")}x\n`).join("");
    expect(lines.length).toBe(1024 * 1024);
    const tty = await shells.atShell();
    tty.type("stty -echo; cat > pasted; stty echo; echo do''ne\r");
    tty.type(lines);
    tty.type("\x04");
    await tty.sees("done");
    expect(sha256(readFileSync(`${shells.allocation.home}/pasted`))).toBe(sha256(lines));
    tty.type("exit\r");
    await tty.ended;
  });

  it("TERM-10 works in scripts: the end of the input ends the shell, whose exit code it is", async () => {
    const asked = await shells.piped("echo so''much\n");
    expect(asked).toMatchObject({ code: 0, stderr: "" });
    expect(asked.stdout).toContain("somuch");
    expect(await shells.piped("exit 3\n")).toMatchObject({ code: 3 });
    expect(await shells.piped("kill -KILL $$\n")).toMatchObject({ code: 137 });
  });

  it("TERM-10 loses nothing of what a program writes, however much it is", async () => {
    const { code, bytes } = await shells.piped("stty -opost; head -c 20000000 /dev/zero | tr '\\0' k; exit\n");
    expect(code).toBe(0);
    expect(bytes.includes(Buffer.alloc(20_000_000, "k"))).toBe(true);
  });

  it("TERM-10 leaves with ~. and tells how to come back, to the same shell with what it showed", async () => {
    const tty = await shells.atShell();
    const shell = await ask(tty, "echo $$");
    tty.type("\r~?");
    await tty.sees("leave the shell to itself");
    tty.type("\r~.");
    expect(await tty.ended).toMatchObject({ code: 0 });
    const [, session = ""] = /--session (\S+)/.exec(tty.shown()) ?? [];
    const back = shells.atTty(["--session", session]);
    await back.sees("echo $$");
    expect(await ask(back, "echo $$")).toBe(shell);
    back.type("exit\r");
    expect(await back.ended).toMatchObject({ code: 0 });
    const again = shells.atTty(["--session", session]);
    expect(await again.ended).toMatchObject({ code: 1 });
    expect(again.shown()).toContain("terminal_session_unknown");
  });

  it("TERM-11 finds the shell of a killed client again", async () => {
    const tty = await shells.atShell();
    tty.type("kept=before; echo ke''pt\r");
    await tty.sees("kept\r");
    const session = await newest();
    process.kill(tty.pid, "SIGKILL");
    await tty.ended;
    const isAttached = async () =>
      (await shells.terminals("open")).some((one) => one.id === session?.id && one.attached);
    await until(async () => !(await isAttached()));
    const back = shells.atTty(["--session", String(session?.id)]);
    await back.sees("kept=before");
    expect(await ask(back, "echo $kept")).toBe("before");
    back.type("exit\r");
    await back.ended;
  });

  it("TERM-11 keeps the shell when the agent is killed", async () => {
    const tty = await shells.atShell();
    const shell = await ask(tty, "echo $$");
    await killChild(shells, "agent");
    expect(await ask(tty, "echo $$")).toBe(shell);
    tty.type("exit\r");
    expect(await tty.ended).toMatchObject({ code: 0 });
  });

  it("TERM-11 keeps the shell when the gateway is killed, and finds its way back by itself", async () => {
    const tty = await shells.atShell();
    const shell = await ask(tty, "echo $$");
    tty.clear();
    await killChild(shells, "gateway");
    await tty.sees("Disconnected: the connection to the gateway broke.");
    await tty.sees("Reconnected.");
    expect(await ask(tty, "echo $$")).toBe(shell);
    tty.type("exit\r");
    expect(await tty.ended).toMatchObject({ code: 0 });
  });

  it("TERM-10 shows which of gateway and node does not answer, and comes back with what was typed meanwhile", async () => {
    const tty = await shells.atShell();
    const shell = await ask(tty, "echo $$");
    const wakeAgent = hangChild(shells, "agent");
    await tty.sees("Unresponsive: the node has not answered since");
    tty.type("echo from''$$\r");
    wakeAgent();
    await tty.sees("The node answers again.");
    await tty.sees(`from${shell}`);
    const wakeGateway = hangChild(shells, "gateway");
    await tty.sees("Unresponsive: the gateway does not answer.");
    const line = "echo again''$$\r";
    tty.type(line);
    // All of it was read: what comes together with a Ctrl-R would take it along to the shell.
    const kept = () => [...tty.shown().matchAll(/(\d+) typed bytes kept/g)].map(([, bytes]) => Number(bytes));
    await until(() => kept().some((bytes) => bytes >= line.length));
    wakeGateway();
    tty.type("\x12");
    await tty.sees("Reconnected.");
    await tty.sees(`again${shell}`);
    tty.type("exit\r");
    expect(await tty.ended).toMatchObject({ code: 0 });
  });

  it("TERM-10 lists terminals, and ends one from elsewhere", async () => {
    const tty = await shells.atShell();
    const session = await newest();
    const id = String(session?.id);
    const name = `${shells.allocation.username}@${shells.node.name}`;
    const all = await shells.run(["terminal", "list", "--all", "--state", "open"]);
    expect(all.stdout).toMatch(new RegExp(`^TERMINAL\\s+STATE[\\s\\S]*${name}\\s+attached\\s[^\\n]*${id}`));
    const own = await shells.run(["terminal", "list", "--node", shells.node.name]);
    expect(own.stdout).toMatch(new RegExp(`${name}\\s+attached\\s[^\\n]*${id}`));
    expect(own.stdout).toMatch(/\d+ of 20 terminals open\. Detached ones count too\./);
    expect(await shells.failure(["terminal", "list", "--state", "open"])).toMatchObject({
      exit: 2,
      code: "usage",
    });
    const ended = await shells.run(["terminal", "end", id]);
    expect(ended).toMatchObject({ code: 0, stdout: `Terminal ${id} (${name}) ended.\n` });
    // At once, not eventually: it was said to have ended.
    expect((await shells.terminals()).find((one) => one.id === id)).toMatchObject({ state: "closed" });
    expect(await tty.ended).toMatchObject({ code: 1 });
    expect(tty.shown()).toContain("terminal_closed");
    expect((await shells.run(["terminal", "close", id])).stdout).toContain("had already ended.");
    expect((await shells.run(["terminal", "list"])).stdout).not.toContain(id);
  });

  it("TERM-10 says that a terminal ended only when its gateway has confirmed it", async () => {
    const tty = await shells.atShell();
    const id = String((await newest())?.id);
    const gateway = shells.installation.upFile().children["gateway"]?.pid ?? 0;
    process.kill(gateway, "SIGSTOP");
    try {
      const asked = await shells.run(["terminal", "end", id, "--no-wait"]);
      expect(asked).toMatchObject({ code: 0, stdout: expect.stringContaining("was asked to end.") });
      expect((await shells.run(["terminal", "list"])).stdout).toMatch(new RegExp(`ending\\s[^\\n]*${id}`));
      expect(await shells.failure(["terminal", "close", id])).toMatchObject({
        ...{
          exit: 1,
          code: "terminal_end_unconfirmed",
          message: expect.stringContaining("was asked to end, but"),
        },
      });
    } finally {
      process.kill(gateway, "SIGCONT");
    }
    expect((await shells.run(["terminal", "end", id])).stdout).toMatch(/ended\.$/m);
    await tty.ended;
  });

  it.for([
    { how: "SIGTERM", code: 143 },
    { how: "SIGHUP", code: 129 },
    { how: "SIGQUIT", code: 131 },
  ] as const)("TERM-10 leaves the local terminal as it was after $how", async ({ how, code }) => {
    const script = 'before=$(stty -g); "$@"; echo "ended=$?"; [ "$(stty -g)" = "$before" ] && echo same-modes';
    const tty = shells.atTty([], ["/bin/sh", "-c", script, "sh"]);
    await untilItAnswers(tty);
    const [command] = readFileSync(`/proc/${tty.pid}/task/${tty.pid}/children`, "utf8").trim().split(" ");
    process.kill(Number(command), how);
    await tty.ended;
    expect(tty.shown()).toContain(`ended=${code}`);
    expect(tty.shown()).toContain("same-modes");
  });

  it("TERM-10 ends when nobody reads its output", async () => {
    const script = '"$@" | head -c 1; echo "ended"';
    const tty = shells.atTty([], ["/bin/sh", "-c", script, "sh"]);
    const typing = setInterval(() => tty.type("echo more\r"), 50);
    expect(await tty.ended).toMatchObject({ code: 0 });
    clearInterval(typing);
    expect(tty.shown()).toContain("ended");
  });
});
