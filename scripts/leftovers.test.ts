import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { expect, it } from "vitest";
import { endLeftovers } from "./leftovers.mjs";

const sleeper = (mark: { env?: string; argument?: string }) =>
  spawn("/bin/sh", ["-c", "read line", mark.argument ?? "none"], {
    stdio: ["pipe", "ignore", "ignore"],
    env: { MARK: mark.env ?? "none" },
  });

it("finds what a run has left by its environment or its arguments, and ends nothing else", async () => {
  const mark = randomUUID();
  const left = [sleeper({ env: mark }), sleeper({ argument: `/tmp/${mark}/x` })];
  const foreign = sleeper({ env: randomUUID() });
  const ended = Promise.all(left.map((child) => once(child, "exit")));
  expect((await endLeftovers(mark, 0)).map((line) => Number(line.split(" ")[0])).sort()).toEqual(
    left.map(({ pid }) => pid).sort(),
  );
  expect(await ended).toEqual([
    [null, "SIGKILL"],
    [null, "SIGKILL"],
  ]);
  expect(foreign.exitCode).toBeNull();
  foreign.stdin?.end();
  await once(foreign, "exit");
});

it("gives time to what is about to end", async () => {
  const mark = randomUUID();
  const child = sleeper({ env: mark });
  const looking = endLeftovers(mark, 60_000);
  child.stdin?.end();
  expect(await looking).toEqual([]);
});
