// What a person sees: a short summary, and the one-time link only on a terminal.

import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { freePorts, type Installation, openInstallation, until } from "../../../testkit/processes/holdfast.ts";

const command = fileURLToPath(new URL("../../bin/holdfast.mjs", import.meta.url));

let installation: Installation;
beforeAll(() => {
  installation = openInstallation();
});
afterAll(() => installation.cleanUp());

/** Runs `holdfast up` until its summary is complete, then stops it. */
async function printedBy(program: string, args: readonly string[], env: Record<string, string>): Promise<string> {
  const child = spawn(program, [...args], {
    env: {
      PATH: process.env["PATH"],
      HOLDFAST_DATA_DIR: installation.dataDir,
      ...freePorts,
      ...env,
    },
    stdio: ["ignore", "pipe", "inherit"],
  });
  let printed = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    printed += text;
  });
  await until(() => printed.includes("holdfast down"));
  await installation.run(["down"]);
  await new Promise((resolve) => (child.exitCode === null ? child.once("close", resolve) : resolve(undefined)));
  return printed;
}

const summaryOf = (printed: string) => printed.slice(printed.indexOf("Holdfast is running")).split("\n");
const withoutTerminal = [process.execPath, [command, "up"]] as const;
/** util-linux's `script` gives it a terminal. */
const withTerminal = ["script", ["-qec", `'${process.execPath}' '${command}' up`, "/dev/null"]] as const;

describe("the summary", () => {
  it("SEC-03 shows no link when stdout is not a terminal, but how to get one", async () => {
    const printed = await printedBy(...withoutTerminal, { SSH_CONNECTION: "10.0.0.9 50000 10.0.0.7 2222" });
    expect(printed).not.toMatch(/hf[a-z]_/);
    expect(printed).not.toContain("\x1b[");
    expect(printed).toContain("holdfast admin link");
    expect(summaryOf(printed).length).toBeLessThanOrEqual(15);
    expect(printed).toMatch(/ssh -L (\d+):127\.0\.0\.1:\1 -L (\d+):127\.0\.0\.1:\2 -p 2222 \S+@10\.0\.0\.7/);
  });

  it("SEC-03 shows the first administrator's link on a terminal, with its secret in the fragment", async () => {
    const printed = await printedBy(...withTerminal, { TERM: "xterm", DISPLAY: ":0" });
    expect(printed).toMatch(/http:\/\/127\.0\.0\.1:\d+\/[^\s?]*#\S*hfl_/);
    expect(printed).toContain("\x1b[");
    expect(printed).not.toContain("ssh -L");
  });

  it("OPS-01 leads to the address that the listeners are bound to, which the commands reach too", async () => {
    const bound = { HOLDFAST_API_BIND: "127.0.0.5", HOLDFAST_GATEWAY_BIND: "127.0.0.6" };
    const printed = await printedBy(...withTerminal, { TERM: "xterm", ...bound });
    expect(printed).toMatch(/ssh -L (\d+):127\.0\.0\.5:\1 -L (\d+):127\.0\.0\.6:\2 /);
    expect(printed).toMatch(/http:\/\/127\.0\.0\.5:\d+\/\S*#hfl_/);
  });

  it("OPS-01 is plain on a terminal that wants no colour", async () => {
    const printed = await printedBy(...withTerminal, { TERM: "xterm", NO_COLOR: "1", DISPLAY: ":0" });
    expect(summaryOf(printed).join("\n")).not.toContain("\x1b[1m");
  });
});
