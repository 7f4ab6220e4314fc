// Why a terminal cannot be opened on a host, with a real holder, a real PTY and a real shell of whoever runs the tests.

import { randomUUID } from "node:crypto";
import { TaskFailed } from "@holdfast/tasks/executor";
import { describe, expect, it } from "vitest";
import type { Launch } from "../src/drivers/pty/driver.ts";
import { ptyDriver } from "../src/drivers/pty/pty-driver.ts";
import { HostProblem } from "../src/identity/state-directory.ts";
import { readGatewayNote } from "../src/terminals/directory.ts";
import { failureOf, holderOf, isRunning, spawnedBy, terminalHost } from "./support/terminals.ts";

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
    const at = () => Promise.reject(new TaskFailed("terminal_pty_failed", "There is no user ada on this node."));
    expect(await failureOf(host.open({}, { at }))).toMatchObject({
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
    // Long enough for the stream to the gateway, which is not what is missing.
    const failure = await failureOf(host.open({}, { withinMs: 5_000 }));
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
