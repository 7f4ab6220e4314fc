// What the outcome of a terminal says about the hops of a preflight: whose hop it is, whichever check learns of it.

import type { HostPreflight } from "@holdfast/contracts/preflight/host-report";
import { type TerminalFailureCode, terminalFailures } from "@holdfast/contracts/reasons/terminal";
import type { TerminalError } from "@holdfast/contracts/terminal/frames";
import { describe, expect, it } from "vitest";
import type { Found, Means } from "./means.ts";
import { nodeStream, nodeTerminalReach, openTask } from "./terminal-checks.ts";

const signal = new AbortController().signal;
const means = { expected: {}, vantage: "command_line" } as Means;

/** A WebSocket that opened, received that the task was sent, and then this error. */
function opened(code: TerminalFailureCode, host?: HostPreflight): Found {
  const { title: _, ...failure } = terminalFailures[code];
  const error: TerminalError = { code, ...failure, correlation_id: "of-the-run" };
  return {
    host: { report: host, problem: null },
    socket: {
      ...{ chain: new Set(["browser_ws_ready", "terminal_open_sent"] as const), refused: undefined },
      ...{
        answered: async () => undefined,
        outcome: async () => error,
        closed: () => null,
        close: () => undefined,
      },
    },
  };
}

const probedBy = (code: "mtls_refused" | "tcp_refused") =>
  ({
    endpoints: [
      { name: "node_terminal", url: "https://t", ok: false, code, server_code: null, detail: "", ms: 1 },
    ],
    problems: [],
  }) as unknown as HostPreflight;

describe("an error of the gateway", () => {
  it("PRE-02 TERM-07 corrects the hop of the client's WebSocket, which was open before", async () => {
    const found = opened("terminal_binding_unavailable");
    expect(await openTask(means, found, signal)).toMatchObject({
      outcome: { status: "not_run" },
      corrects: {
        hop: "browser_terminal_ws",
        by: { outcome: { status: "failed", code: "terminal_binding_unavailable" }, from: "gateway" },
      },
    });
    const other = await openTask(means, opened("terminal_pty_failed"), signal);
    expect(other).toMatchObject({ outcome: { status: "passed" } });
    expect(other).not.toHaveProperty("corrects");
  });

  it("PRE-02 TERM-04 about the node's certificate is at the gateway's hop: the listener was reached", async () => {
    const found = opened("terminal_node_stream_mtls_failed", probedBy("mtls_refused"));
    expect(await nodeTerminalReach(means, found, signal)).toMatchObject({
      ...{ outcome: { status: "passed" }, from: "node" },
      detail: expect.stringContaining("refused the certificate"),
    });
    expect(await nodeStream(means, found, signal)).toMatchObject({
      outcome: { status: "failed", code: "terminal_node_stream_mtls_failed" },
    });
  });

  it("PRE-02 does not excuse a listener that the node's probe does not reach, nor a refusal without a terminal", async () => {
    for (const code of ["terminal_node_stream_mtls_failed", "terminal_node_stream_timeout"] as const) {
      const away = opened(code, probedBy("tcp_refused"));
      expect(await nodeTerminalReach(means, away, signal)).toMatchObject({
        outcome: { status: "failed", code: "terminal_node_stream_timeout" },
      });
    }
    const { socket: _, ...alone } = opened("terminal_pty_failed", probedBy("mtls_refused"));
    expect(await nodeTerminalReach(means, alone, signal)).toMatchObject({
      outcome: { status: "failed", code: "terminal_node_stream_mtls_failed" },
    });
  });
});
