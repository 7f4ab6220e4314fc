// Terminals whose connection to the gateway breaks, or whose agent restarts, with a real holder, a real PTY and a real shell of whoever runs the tests.

import { execFileSync } from "node:child_process";
import { describe, expect, it } from "vitest";
import { readGatewayNote } from "../src/terminals/directory.ts";
import { ask, holderOf, isRunning, spawnedBy, terminalHost } from "./support/terminals.ts";

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
    const host = await terminalHost({ handshakeMs: 3_000 });
    const { stream, sessionId } = await host.open();
    let unanswered = 0;
    host.gateway.refuse = () => {
      unanswered += 1;
      return "silence";
    };
    stream.drop();
    await expect.poll(() => unanswered).toBeGreaterThan(0);
    host.gateway.refuse = () => undefined;
    const again = await host.gateway.stream(sessionId, stream);
    await again.frame("hello");
  });

  it("TERM-06 a holder that its user stopped ends when its stream was lost, too", async () => {
    const host = await terminalHost({ obeyMs: 200 });
    const { stream, sessionId, pid } = await host.open({}, { detachedMs: 1_000 });
    const holder = holderOf(host, sessionId);
    process.kill(holder, "SIGSTOP");
    stream.drop();
    await expect.poll(() => host.terminals.count()).toBe(0);
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
    const host = await terminalHost({ obeyMs: 200 });
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
