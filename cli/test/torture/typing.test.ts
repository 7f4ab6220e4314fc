import { randomInt } from "node:crypto";
import { readFileSync } from "node:fs";
import { findSockets } from "@holdfast/node-agent/terminals/directory";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { lacks } from "../../../scripts/facilities.mjs";
import { until } from "../../../testkit/processes/holdfast.ts";
import { openTypingPlace, startTypist, type TypingPlace, tortureTyping } from "./typing.ts";

describe.skipIf(lacks("root"))("what is typed", () => {
  let place: TypingPlace;
  beforeAll(async () => {
    place = await openTypingPlace();
  });
  afterAll(() => place.close());

  it("TERM-10 arrives once and in order while agent and gateway are stopped, killed and cut off", async () => {
    const seed = randomInt(1, 2 ** 31);
    process.stdout.write(`typing torture with seed ${seed}\n`);
    expect(await tortureTyping(place, { rounds: 2, seed })).toMatchObject({ wrong: [] });
  });

  it("TERM-10 is reported as unconfirmed, byte by byte, when the process that held the shell was killed", async () => {
    const typist = await startTypist(place, "cut-short");
    const { agent, gateway_url } = await place.shells.up.ready;
    const passedOn = async () => {
      const metrics = await (await fetch(`${gateway_url}/metrics`)).text();
      return Number(/^holdfast_gateway_terminal_bytes_total\{[^}]*to_node[^}]*\} (\d+)/m.exec(metrics)?.[1]);
    };
    const [shell] = findSockets(agent?.state_dir ?? "").filter(({ kind }) => kind === "shell");
    if (shell?.kind !== "shell") throw new Error("there is no holder");
    const arrived = "this arrives\n";
    const missing = "and this does not\n".repeat(50);
    typist.type(arrived);
    await until(() => readFileSync(typist.file, "utf8") === arrived);
    process.kill(shell.holder.pid, "SIGSTOP");
    const passed = await passedOn();
    typist.type(missing);
    await until(async () => (await passedOn()) === passed + missing.length);
    process.kill(shell.holder.pid, "SIGKILL");
    const { code, stderr } = await typist.ended;
    expect(code).toBe(1);
    expect(stderr).toContain("terminal_pty_failed");
    const [, unconfirmed] = /The last (\d+) bytes of input were not confirmed/.exec(stderr) ?? [];
    // Acknowledgements of what came before may have been on their way.
    const earlier = [0, arrived.length, arrived.length + typist.first.length];
    expect(earlier.map((bytes) => bytes + missing.length)).toContain(Number(unconfirmed));
    expect(readFileSync(typist.file, "utf8")).toBe(arrived);
  });
});
