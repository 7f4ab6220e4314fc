import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { endPipes } from "./last-output.ts";

/** Without a turn of the event loop, as on a host that is busy. */
function blockUntilEnded(pid: number): void {
  const state = () => /\) (\w)/.exec(readFileSync(`/proc/${pid}/stat`, "utf8"))?.[1];
  while (state() !== "Z") Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 5);
}

it("EXEC-02 reads what a script wrote before its pipes are ended, however busy the host is", async () => {
  const child = spawn("sh", ["-c", "echo before; echo problem >&2"], { stdio: ["ignore", "pipe", "pipe"] });
  const printed: string[] = [];
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (bytes) => printed.push(String(bytes)));
  blockUntilEnded(child.pid ?? 0);
  endPipes([child.stdout, child.stderr]);
  await once(child, "close");
  expect(printed.toSorted()).toEqual(["before\n", "problem\n"]);
});

it("EXEC-02 ends pipes whose writer never stops", async () => {
  const child = spawn("yes", { stdio: ["ignore", "pipe", "ignore"] });
  child.stdout.on("data", () => undefined);
  await once(child.stdout, "data");
  endPipes([child.stdout]);
  expect(await once(child, "close")).toHaveLength(2);
});
