// An agent that begins without an identity and joins by itself, against the API's faulty twin.

import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import http from "node:http";
import { join as joinPath } from "node:path";
import type { RunningProcess } from "@holdfast/kit/lifecycle";
import { readSettings, UsageError } from "@holdfast/kit/settings";
import { describe, expect, it } from "vitest";
import { joinedDirectory } from "../../testkit/agent/agent.ts";
import { scratchDirectory } from "../../testkit/agent/scratch.ts";
import { atEnd } from "../../testkit/lifetime/at-end.ts";
import { startUnjoined } from "../src/bootstrap.ts";
import { lookAt } from "../src/diagnostics/explain.ts";
import { hasIdentity } from "../src/identity/has-identity.ts";
import { readIdentity } from "../src/identity/identity-file.ts";
import { stateFiles } from "../src/identity/state-directory.ts";
import { createLog } from "../src/log.ts";
import { startAgent } from "../src/main.ts";
import { agentSettings } from "../src/settings.ts";
import { type FakeApi, type Fault, startFakeApi } from "./support/fake-api.ts";

type Pause = { ms: number; end: () => void };
type Options = { stateDir?: string; token?: string; env?: Record<string, string> };

/** The test decides when a pause ends. */
async function begin(api: FakeApi, { stateDir = scratchDirectory(), token, env = {} }: Options = {}) {
  const pauses: Pause[] = [];
  const lines: string[] = [];
  const log = createLog({ level: "debug", write: (line) => lines.push(line) });
  const bootstrapToken = token ?? api.token("hfb_");
  const settings = readSettings(agentSettings, {
    HOLDFAST_AGENT_STATE_DIR: stateDir,
    HOLDFAST_AGENT_PORT: "0",
    HOLDFAST_NODE_API_URL: api.url,
    ...env,
  });
  const running: RunningProcess = await startUnjoined(
    { ...settings, bootstrapToken },
    {
      log,
      start: () => startAgent(settings, { log }),
      pause: (ms, signal) =>
        new Promise((resolve) => {
          pauses.push({ ms, end: resolve });
          signal.addEventListener("abort", () => resolve());
        }),
    },
  );
  let stopped: Promise<void> | undefined;
  const stop = () => {
    stopped ??= running.stop();
    return stopped;
  };
  atEnd(stop);
  const paused = async (count: number): Promise<Pause> => {
    await expect.poll(() => pauses.length).toBe(count);
    return pauses[count - 1] as Pause;
  };
  return { stateDir, token: bootstrapToken, pauses, paused, logged: () => lines.join(""), running, stop };
}

const refusing = (status: number, code: string, headers = {}): Fault => ({
  do: "answer",
  status,
  headers,
  body: JSON.stringify({
    code,
    message: `refused with ${code}`,
    next_step: "ask somebody",
    correlation_id: "c-1",
  }),
});
const enrolling = (api: FakeApi, fault: Fault | undefined) => {
  api.fault = (path) => (path === "/v1/enroll" ? fault : undefined);
};
const recordsOf = (stateDir: string) =>
  lookAt(stateDir, { now: Date.now(), diskPressurePercent: 100 }).records.map(({ reason, detail }) => ({
    reason,
    detail,
  }));

describe("an agent with a bootstrap token and no identity", () => {
  it("ID-01 joins by itself and goes to work", async () => {
    const api = await startFakeApi();
    const agent = await begin(api, { env: { HOLDFAST_NODE_NAME: "reef-1" } });
    await expect.poll(() => api.heartbeats.length).toBeGreaterThan(0);
    expect(api.enrollments).toMatchObject([{ body: { node_name: "reef-1" } }]);
    expect(hasIdentity(agent.stateDir)).toBe(true);
    expect(agent.pauses).toEqual([]);
    expect(agent.logged()).not.toContain(agent.token.slice(4, 40));
    await agent.stop();
  });

  it.for([
    [401, "enrollment_token_unknown"],
    [410, "enrollment_token_revoked"],
    [410, "enrollment_token_expired"],
    [403, "enrollment_token_wrong_node"],
    [401, "identity_revoked"],
    [409, "node_retired"],
    [409, "name_taken"],
  ] as const)(
    "ID-01 refused with %i %s writes it down, waits longer each time, and does not end",
    async ([status, code]) => {
      const api = await startFakeApi();
      enrolling(api, refusing(status, code));
      const agent = await begin(api);
      for (let attempt = 1; attempt <= 10; attempt += 1) {
        const { ms, end } = await agent.paused(attempt);
        const most = Math.min(600_000, 10_000 * 2 ** (attempt - 1));
        expect(ms).toBeGreaterThanOrEqual(most / 2);
        expect(ms).toBeLessThanOrEqual(most);
        expect(api.requests.filter((path) => path === "/v1/enroll")).toHaveLength(attempt);
        const [record] = recordsOf(agent.stateDir);
        expect(record?.reason).toBe("recovery_enrollment_blocked");
        expect(record?.detail).toContain(`${code}: refused with ${code} ask somebody`);
        end();
      }
      await agent.paused(11);
      expect(agent.logged() + JSON.stringify(recordsOf(agent.stateDir))).not.toContain(agent.token.slice(4, 40));
    },
  );

  it("ID-01 joins as soon as the reason is gone, and its history tells what was wrong before", async () => {
    const api = await startFakeApi();
    enrolling(api, refusing(409, "name_taken"));
    const agent = await begin(api);
    const { end } = await agent.paused(1);
    expect(await healthOf(agent.running)).toMatchObject({
      ok: true,
      connected: false,
      problem: "recovery_enrollment_blocked",
    });
    enrolling(api, undefined);
    end();
    await expect
      .poll(() => api.diagnostics.map(({ reason }) => reason))
      .toEqual(expect.arrayContaining(["recovery_enrollment_blocked", "process_alive"]));
  });

  it.for<[string, (api: FakeApi) => void | Promise<void>, string, number, number]>([
    ["nobody answers", (api) => api.stop(), "api_unreachable", 250, 500],
    [
      "the server is not ready",
      (api) => enrolling(api, refusing(503, "shutting_down")),
      "control_plane_unreachable",
      250,
      500,
    ],
    [
      "it asks for patience",
      (api) => enrolling(api, refusing(429, "rate_limit_exceeded", { "retry-after": "120" })),
      "edge_rate_limited",
      120_000,
      132_000,
    ],
    [
      "a page answers",
      (api) => enrolling(api, { do: "answer", status: 403, body: "<html>no" }),
      "control_plane_unreachable",
      250,
      500,
    ],
  ])("AGENT-02 when %s, waits as the link does", async ([, arrange, reason, least, most]) => {
    const api = await startFakeApi();
    const token = api.token("hfb_");
    await arrange(api);
    const agent = await begin(api, { token });
    const { ms } = await agent.paused(1);
    expect(recordsOf(agent.stateDir)[0]?.reason).toBe(reason);
    expect(ms).toBeGreaterThanOrEqual(least);
    expect(ms).toBeLessThanOrEqual(most);
  });

  it("ID-01 sends its token to no other server", async () => {
    const [api, other] = [await startFakeApi(), await startFakeApi()];
    const agent = await begin(api, { token: other.token("hfb_") });
    await agent.paused(1);
    expect(recordsOf(agent.stateDir)[0]?.reason).toBe("server_tls_untrusted");
    expect(api.requests).toEqual(["/v1/trust-bundle"]);
  });

  it("AGENT-05 says what is wrong with its state directory, and goes on when that is repaired", async () => {
    const api = await startFakeApi();
    const stateDir = joinPath(scratchDirectory(), "state");
    writeFileSync(stateDir, "");
    const agent = await begin(api, { stateDir });
    const { end } = await agent.paused(1);
    expect(agent.logged()).toContain("state_dir_read_only");
    expect(api.requests).toEqual([]);
    rmSync(stateDir);
    end();
    await expect.poll(() => api.heartbeats.length).toBeGreaterThan(0);
  });

  it("is stopped at once, in a pause and while the server keeps it waiting", async () => {
    const api = await startFakeApi();
    enrolling(api, refusing(410, "enrollment_token_expired"));
    const pausing = await begin(api);
    await pausing.paused(1);
    await pausing.stop();
    let requests = 0;
    const silent = http.createServer(() => void requests++).listen(0, "127.0.0.1");
    atEnd(() => void silent.close().closeAllConnections());
    await expect.poll(() => silent.address()).not.toBeNull();
    const { port } = silent.address() as { port: number };
    const stateDir = await joinedDirectory(await startFakeApi());
    const files = stateFiles(stateDir);
    const known = JSON.parse(readFileSync(files.agent, "utf8"));
    const elsewhere = {
      ...known,
      api_url: `http://127.0.0.1:${port}`,
      profile: { ...known.profile, endpoints: {} },
    };
    writeFileSync(files.agent, JSON.stringify(elsewhere));
    const waiting = await begin(api, { stateDir, env: { HOLDFAST_NODE_API_URL: "" } });
    await expect.poll(() => requests).toBe(1);
    await waiting.stop();
    expect(api.heartbeats).toEqual([]);
  });

  it.for<[string, Options]>([
    ["no address", { env: { HOLDFAST_NODE_API_URL: "" } }],
    ["a token of another kind", { token: `hfe_${"x".repeat(43)}.${"y".repeat(43)}` }],
    ["half a token", { token: `hfb_${"x".repeat(43)}` }],
  ])("OPS-03 with %s does not start", async ([, options]) => {
    const api = await startFakeApi();
    await expect(begin(api, options)).rejects.toThrow(UsageError);
    expect(api.requests).toEqual([]);
  });
});

describe("a host that has lost its identity", () => {
  it.for(["identity", "trust"] as const)("ID-08 without its %s file comes back as the same node", async (lost) => {
    const api = await startFakeApi();
    const stateDir = await joinedDirectory(api);
    const files = stateFiles(stateDir);
    expect(hasIdentity(stateDir)).toBe(true);
    const before = readIdentity(files).certificate.serial;
    rmSync(files[lost]);
    expect(hasIdentity(stateDir)).toBe(false);
    await begin(api, { stateDir, env: { HOLDFAST_NODE_API_URL: "" } });
    await expect.poll(() => api.heartbeats.length).toBeGreaterThan(0);
    expect(api.enrollments.at(-1)).toMatchObject({ body: { node_id: api.nodeId }, nodeId: api.nodeId });
    expect(readIdentity(files).certificate.serial).not.toBe(before);
    expect(existsSync(files.enrolling)).toBe(false);
  });

  it("ID-08 is one with nothing, or with the identity of another node; not one whose certificate has expired", async () => {
    expect(hasIdentity(scratchDirectory())).toBe(false);
    expect(hasIdentity(joinPath(scratchDirectory(), "missing"))).toBe(false);
    const [mine, other] = [
      await joinedDirectory(await startFakeApi()),
      await joinedDirectory(await startFakeApi()),
    ];
    writeFileSync(stateFiles(mine).identity, readFileSync(stateFiles(other).identity));
    expect(hasIdentity(mine)).toBe(false);
    expect(hasIdentity(await joinedDirectory(await startFakeApi({ validityMs: -1000 })))).toBe(true);
  });
});

async function healthOf({ ports }: RunningProcess): Promise<unknown> {
  return (await fetch(`http://127.0.0.1:${ports["local"]}/healthz`)).json();
}
