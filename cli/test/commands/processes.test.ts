// `holdfast api`, `gateway` and `worker` as processes of their own.

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { type IncomingMessage, request } from "node:http";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { unsupportedNames } from "@holdfast/kit/known-names";
import { afterEach, describe, expect, it } from "vitest";
import { aPerson } from "../support/command.ts";

const person = aPerson();
const command = fileURLToPath(new URL("../../bin/holdfast.mjs", import.meta.url));

const running: ChildProcess[] = [];
afterEach(async () => {
  for (const child of running.splice(0)) {
    if (child.exitCode === null && child.signalCode === null && child.kill("SIGKILL")) await once(child, "exit");
  }
});

/** Starts a gateway on a free port and waits until its log tells which. */
async function startGateway(
  more: Record<string, string> = {},
): Promise<{ child: ChildProcess; port: number; logged: string }> {
  const env = { PATH: process.env["PATH"], HOLDFAST_GATEWAY_PORT: "0", ...more };
  const child = spawn(process.execPath, [command, "gateway"], { env, stdio: ["ignore", "pipe", "inherit"] });
  running.push(child);
  let logged = "";
  for await (const line of createInterface({ input: child.stdout })) {
    logged += `${line}\n`;
    const { port } = JSON.parse(line) as { port?: number };
    if (port !== undefined) return { child, port, logged };
  }
  throw new Error("the gateway ended before it listened");
}

async function statusFor(port: number, headers: Record<string, string>): Promise<number | undefined> {
  const [response] = (await once(request({ port, path: "/healthz", headers }).end(), "response")) as [
    IncomingMessage,
  ];
  response.resume();
  return response.statusCode;
}

describe("holdfast gateway", () => {
  it("OPS-01 answers on a free port, and refuses a foreign Host", async () => {
    const { port } = await startGateway();
    const response = await fetch(`http://127.0.0.1:${port}/healthz`);
    expect([response.status, await response.json()]).toEqual([200, { status: "ok" }]);
    expect(await statusFor(port, { host: "evil.example" })).toBe(421);
    expect(await statusFor(port, { host: `localhost:${port}` })).toBe(200);
  });

  it.for(["SIGTERM", "SIGINT"] as const)("OPS-01 ends cleanly on %s", async (signal) => {
    const { child, port } = await startGateway();
    child.kill(signal);
    expect(await once(child, "exit")).toEqual([0, null]);
    await expect(fetch(`http://127.0.0.1:${port}/healthz`)).rejects.toThrow();
  });

  it("OPS-01 names the holder of its port", async () => {
    const { child, port } = await startGateway();
    const { code, stderr } = await person.holdfast(["gateway"], { env: { HOLDFAST_GATEWAY_PORT: String(port) } });
    expect(code).toBe(2);
    expect(stderr).toContain(`pid ${child.pid}`);
    expect(stderr).toContain("HOLDFAST_GATEWAY_PORT");
  });
});

describe("environment variables that are known and not supported", () => {
  const env = Object.fromEntries([...unsupportedNames.keys()].map((name) => [name, "geheim"]));

  /** Of the lines that name one, in the order of their names: how often each is reported. */
  function expectReports(output: string, isWarning: (line: string) => boolean): void {
    const lines = output.split("\n").filter((line) => line.includes(" is set: known, "));
    expect(lines.filter((line) => !isWarning(line))).toEqual([]);
    const names = lines.map((line) => /([A-Z_]+) is set: known, (not supported yet|ignored); /.exec(line)?.[1]);
    expect(names).toEqual([...unsupportedNames.keys()]);
    expect(output).not.toContain("geheim");
  }
  const logLine = (line: string) => (JSON.parse(line) as { level: string }).level === "warn";

  it("OPS-03 are reported by a gateway when it starts, and do not stop it", async () => {
    expectReports((await startGateway(env)).logged, logLine);
  });

  // Those cannot start here for another reason, after their report.
  it.for(["api", "worker"])("OPS-03 are reported by the %s when it starts", async (name) => {
    expectReports((await person.holdfast([name], { env })).stdout, logLine);
  });

  it("OPS-03 are reported by an agent when it starts", async () => {
    const home = { HOLDFAST_AGENT_STATE_DIR: `${person.home}/none` };
    const { code, stdout } = await person.holdfast(["agent", "run"], { env: { ...env, ...home } });
    expect(code).toBe(1);
    expectReports(stdout, logLine);
  });

  it.for([["up"], ["migrate"], ["agent", "join", "--token", "x"], ["ingress", "--once"]])(
    "OPS-03 are reported to whoever runs %o",
    async (args) => {
      const wrong = args[0] === "up" ? { HOLDFAST_API_PORT: "many" } : {};
      const { code, stdout, stderr } = await person.holdfast(args, { env: { ...env, ...wrong } });
      expect(code).not.toBe(0);
      expectReports(stdout + stderr, (line) => /^(warning:|!) /.test(line));
    },
  );
});

describe("a process with wrong settings", () => {
  const secret = "geheim-geheim-geheim";

  it("OPS-03 exits 2 and names each setting, its value and what is allowed, but no secret", async () => {
    const env = { HOLDFAST_API_PORT: "many", HOLDFAST_PUBLIC_URL: "kelp", HOLDFAST_KEK_BASE64: secret };
    const { code, stdout, stderr } = await person.holdfast(["api"], { env });
    expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
    expect(stderr).toContain('HOLDFAST_API_PORT is "many". Allowed: a port from 0 to 65535');
    expect(stderr).toContain('HOLDFAST_PUBLIC_URL is "kelp". Allowed: an http:// or https:// URL');
    expect(stderr).toContain("HOLDFAST_KEK_BASE64 is (secret, not shown). Allowed: 32 random bytes in base64");
    expect(stderr).not.toContain(secret);
  });

  it("OPS-03 exits 2 at a wrong value under an alias, and names the alias", async () => {
    const { code, stderr } = await person.holdfast(["gateway"], { env: { GATEWAY_PORT: "seven" } });
    expect(code).toBe(2);
    expect(stderr).toContain('GATEWAY_PORT is "seven"');
  });

  it("OPS-03 exits 2 at two aliases that disagree, and takes the canonical name over both", async () => {
    const env = { GPUAAS_API_URL: "https://a.example", NODE_AGENT_CONTROL_PLANE_URL: "https://b.example" };
    const disagreeing = await person.holdfast(["agent", "run"], { env });
    expect(disagreeing.code).toBe(2);
    expect(disagreeing.stderr).toContain(
      "GPUAAS_API_URL and NODE_AGENT_CONTROL_PLANE_URL are both names of HOLDFAST_NODE_API_URL and disagree",
    );
    const decided = { ...env, HOLDFAST_NODE_API_URL: "https://c.example", HOLDFAST_AGENT_STATE_DIR: person.home };
    expect((await person.holdfast(["agent", "run"], { env: decided })).stderr).toContain("not a node yet");
  });

  it("SEC-03 exits 2 rather than speak clear text to the network", async () => {
    const open = { HOLDFAST_GATEWAY_BIND: "0.0.0.0", HOLDFAST_GATEWAY_PORT: "0" };
    const { code, stderr } = await person.holdfast(["gateway"], { env: open });
    expect(code).toBe(2);
    expect(stderr).toContain("HOLDFAST_GATEWAY_BIND is 0.0.0.0");
    expect(stderr).toContain("clear text");
  });

  it.for(["api", "worker"])("OPS-02 exits 2 without a database: %s", async (name) => {
    const { code, stderr } = await person.holdfast([name], { env: { HOLDFAST_API_PORT: "0" } });
    expect(code).toBe(2);
    expect(stderr).toMatch(/HOLDFAST_(DATABASE_URL|KEK_BASE64)/);
  });
});
