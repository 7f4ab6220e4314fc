// What the holder of a shell counts of its input, with a real holder and a real PTY, while agents come and go.

import { randomBytes } from "node:crypto";
import { describe, expect, it } from "vitest";
import { ask, terminalHost } from "./support/terminals.ts";

const newWriter = () => randomBytes(16).toString("hex");

describe("input of a terminal", () => {
  it("TERM-10 is acknowledged when the PTY has it, and counted on over a restart of the agent", async () => {
    const host = await terminalHost();
    const { stream, sessionId } = await host.open();
    const writer = newWriter();
    expect(await stream.attach({ writer })).toMatchObject({ input: 0 });
    stream.type("echo $((40 + 2))\r");
    await expect.poll(() => stream.frames.at(-1)).toEqual({ type: "ack", bytes: 17 });
    await host.restart();
    const again = await host.gateway.stream(sessionId, stream);
    await again.frame("hello");
    expect(await again.attach({ writer })).toMatchObject({ input: 17 });
    await expect.poll(() => again.frames.at(-1)).toEqual({ type: "ack", bytes: 17 });
    again.type("exit\r");
    await again.frame("exit");
    expect(again.frames).toContainEqual({ type: "ack", bytes: 22 });
  });

  it("TERM-10 that the program does not read is taken, and acknowledged only as far as it was written", async () => {
    const host = await terminalHost();
    const { stream } = await host.open();
    const writer = newWriter();
    await stream.attach();
    await ask(stream, "stty raw -echo");
    await stream.attach({ writer });
    const command = "echo beg''un; sleep 300\r";
    stream.type(command);
    await expect.poll(() => stream.text()).toContain("begun");
    stream.type(Buffer.alloc(200_000, "y"));
    const taken = command.length + 200_000;
    await expect.poll(async () => (await stream.attach({ writer })).input).toBe(taken);
    expect((await stream.frame("ack")).bytes).toBeLessThan(100_000);
  });

  it("TERM-10 is counted for each writer, and for none that does not ask", async () => {
    const host = await terminalHost();
    const { stream } = await host.open();
    const [one, other] = [newWriter(), newWriter()];
    await stream.attach({ writer: one });
    stream.type("# one\r");
    expect((await stream.frame("ack")).bytes).toBe(6);
    expect(await stream.attach({ writer: other })).toMatchObject({ input: 0 });
    stream.type("# other\r");
    await expect.poll(() => stream.frames.at(-1)).toEqual({ type: "ack", bytes: 8 });
    expect(await stream.attach()).not.toHaveProperty("input");
    await ask(stream, "echo uncounted");
    expect(await stream.attach({ writer: one })).toMatchObject({ input: 6 });
    const acknowledged = () => stream.frames.filter((frame) => frame.type === "ack").map(({ bytes }) => bytes);
    await expect.poll(acknowledged).toEqual([6, 8, 6]);
  });
});
