// A node with a good certificate that says what no agent of ours would, or comes when all is over. What it
// says reaches the api in a form that the api can keep; what it brings too late ends.

import { TerminalEvent } from "@holdfast/contracts/internal/endpoints";
import type { NodeFrame } from "@holdfast/contracts/terminal/frames";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { connectClient, connectNode } from "../../testkit/gateway/gateway.ts";
import { useRig } from "../../testkit/gateway/rig.ts";

const rig = useRig();

describe("a node that lies", () => {
  it.for([
    ["an exit code beyond all numbers", { type: "exit", code: 1e300, signal: null }],
    ["a signal with a NUL", { type: "exit", code: null, signal: "SIG\0TERM" }],
    ["half a character for a signal", { type: "exit", code: null, signal: "\ud800" }],
    ["an error's code with a NUL", { type: "error", code: "odd\0code", message: "hm" }],
    ["an error's code that moves the cursor", { type: "error", code: "\u001b[2Jodd", message: "hm" }],
    ["a message with a NUL", { type: "error", code: "terminal_pty_failed", message: "no\0shell" }],
  ] as [string, NodeFrame][])(
    "TERM-08 %s: the api receives the ending in a form that it stores",
    async ([, frame]) => {
      const { client, stream, sessionId } = await rig.open();
      stream.send(frame);
      await client.closed;
      const closed = () => rig.api.events(sessionId).find(({ type }) => type === "closed");
      await expect.poll(closed).toBeDefined();
      expect(TerminalEvent.safeParse(closed()).error).toBeUndefined();
      const received = JSON.stringify([closed(), client.frames.at(-1)]);
      expect(received).not.toMatch(/\\u00[01]|\\ud800/);
    },
  );

  it("TERM-08 a failure's message: the api receives it in a form that it stores", async () => {
    const { token, grant } = rig.api.grant({ node_id: rig.node.id });
    const client = await connectClient(rig.gateway, token);
    const stream = await connectNode(rig.gateway, grant.session_id, rig.node);
    stream.send({ type: "error", code: "terminal_pty_failed", message: "no\0shell\u001b[2J" });
    expect(await client.next("error")).toMatchObject({ code: "terminal_pty_failed" });
    const failed = () => rig.api.events(grant.session_id).find(({ type }) => type === "failed");
    await expect.poll(failed).toBeDefined();
    expect(TerminalEvent.safeParse(failed()).error).toBeUndefined();
    expect(JSON.stringify([failed(), client.frames])).not.toMatch(/\\u00[01]/);
  });
});

describe("a node that is late", () => {
  it("TERM-10 brings a stream that was let in before its terminal ended: the shell ends, and nothing stays", async () => {
    const { token, grant } = rig.api.grant({ node_id: rig.node.id });
    const client = await connectClient(rig.gateway, token);
    const requested = Promise.withResolvers<void>();
    const answer = Promise.withResolvers<void>();
    rig.api.beforeAdmit = () => {
      requested.resolve();
      return answer.promise;
    };
    const coming = connectNode(rig.gateway, grant.session_id, rig.node);
    await requested.promise;
    rig.api.beforeAdmit = undefined;
    await expect.poll(() => rig.api.following()).toBe(1);
    rig.api.publish({ type: "close_terminal", session_id: grant.session_id, code: "terminal_closed" });
    expect(await client.next("error")).toMatchObject({ code: "terminal_closed" });
    answer.resolve();
    const stream = await coming;
    stream.send({ type: "hello", offset: 0, end: 0 });
    expect(await stream.next("close")).toMatchObject({ reason: "closed" });
    await stream.closed;
    await expect.poll(() => rig.gateway.metric("holdfast_gateway_held", 'reason="bindings"')).toBe(0);
    expect(await rig.gateway.metric("holdfast_gateway_terminals", 'reason="detached"')).toBe(0);
  });
});

describe("a clock that is set back", () => {
  it("TERM-10 keeps no idle terminal", async () => {
    const { client } = await rig.open({ limits: { idle_seconds: 1 } });
    vi.useFakeTimers({ toFake: ["Date"], now: Date.now() - 3_600_000, shouldAdvanceTime: true });
    onTestFinished(() => void vi.useRealTimers());
    expect(await client.next("error")).toMatchObject({ code: "terminal_idle" });
  });
});
