// A PTY on a host that has little time for it.

import { describe, expect, it } from "vitest";
import { openPty } from "../src/drivers/pty/pty.mjs";

describe("a PTY", () => {
  it("TERM-10 gives everything that its program wrote before it ended, however slowly it is read", async () => {
    const lines = 4_000;
    const room = Buffer.alloc(64 * 1024);
    const read: string[] = [];
    const ended = Promise.withResolvers<void>();
    openPty({
      ...{
        file: "/bin/sh",
        args: ["-c", `seq ${lines}`],
        env: { PATH: "/usr/bin:/bin" },
        cwd: "/",
        cols: 80,
        rows: 24,
      },
      room: () => room,
      onOutput: (count) => {
        read.push(room.toString("utf8", 0, count));
        // Meanwhile nothing else happens here, as on a host where others have the processor.
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 150);
        return true;
      },
      onEnd: () => ended.resolve(),
    });
    await ended.promise;
    expect(read.join("").trimEnd().split("\r\n")).toEqual(
      Array.from({ length: lines }, (_, line) => `${line + 1}`),
    );
  });
});
