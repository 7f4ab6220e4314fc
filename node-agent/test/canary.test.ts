// Secrets pushed through every way out of the agent: none of them may come out anywhere.

import { generateKeyPairSync, randomBytes } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { startTestAgent } from "../../testkit/agent/agent.ts";
import { explain, lookAt } from "../src/diagnostics/explain.ts";
import { readIdentity } from "../src/identity/identity-file.ts";
import { stateFiles } from "../src/identity/state-directory.ts";
import { startFakeApi } from "./support/fake-api.ts";
import { loaderOf, testType } from "./support/test-types.ts";

const random = () => randomBytes(32).toString("base64url");
const pem = generateKeyPairSync("ec", { namedCurve: "P-256" })
  .privateKey.export({ type: "pkcs8", format: "pem" })
  .toString();
const secrets = {
  "an API token": `hft_${random()}`,
  "an enrollment token": `hfe_${random()}.${random()}`,
  "a bearer": `Bearer ${random()}`,
  "a private key": pem,
};
/** What must not be seen of each: any longer part of it. */
const traces = Object.values(secrets).flatMap((secret) =>
  secret
    .split(/[\s.]+|hf[te]_/)
    .filter((part) => part.length > 20 && !part.startsWith("-"))
    // Not the beginning: all keys of one kind share it.
    .map((part) => part.slice(-20, -4)),
);
const all = Object.values(secrets).join("\n");

describe("secrets", () => {
  it("AGENT-10 never leave the agent by any way", async () => {
    const api = await startFakeApi();
    const types = {
      "test.returns": testType(async () => ({ said: all })),
      "test.throws": testType(async ({ fail, progress }) => {
        progress(all);
        throw fail("disk_on_fire", all);
      }),
      "test.breaks": testType(async () => {
        throw new Error(all, { cause: all });
      }),
    };
    const agent = await startTestAgent(api, { loadType: loaderOf(types) });
    const names = [...Object.keys(types), `test.${all}`];
    for (const task_type of names) {
      api.enqueue(api.sign({ task_type, params: { secret: all }, correlation_id: secrets["an API token"] }));
    }
    await expect.poll(() => api.results).toHaveLength(names.length);
    const envelope = JSON.stringify({ code: "invalid_request", message: all, next_step: all });
    let faults = 2;
    api.fault = () => (faults-- > 0 ? { do: "answer", status: 400, body: envelope } : undefined);
    api.standing = { status: "quarantined", reason: all };
    api.dropConnections();
    await expect.poll(() => api.heartbeats.length).toBeGreaterThan(1);
    await expect.poll(() => api.diagnostics.map((one) => one.reason)).toContain("agent_version_drift");
    await expect.poll(() => api.diagnostics.map((one) => one.reason)).toContain("node_quarantined");

    const picture = lookAt(agent.stateDir, { now: Date.now(), diskPressurePercent: 90, records: 100 });
    const sinks: Record<string, string> = {
      log: agent.logged(),
      results: JSON.stringify(api.results),
      progress: JSON.stringify(api.progress),
      heartbeats: JSON.stringify(api.heartbeats),
      "diagnostics upload": JSON.stringify(api.diagnostics),
      metrics: (await agent.get("/metrics")).text,
      healthz: (await agent.get("/healthz")).text,
      capacity: (await agent.get("/v1/capacity")).text,
      diagnose: explain(picture, Date.now()).join("\n"),
      "diagnose --json": JSON.stringify(picture),
    };
    const { keyPem } = readIdentity(stateFiles(agent.stateDir));
    for (const file of readdirSync(agent.stateDir, { withFileTypes: true })) {
      if (file.isFile()) sinks[file.name] = readFileSync(join(agent.stateDir, file.name), "latin1");
    }
    expect(Object.keys(sinks)).toEqual(expect.arrayContaining(["journal.a", "diagnostics.log", "identity.pem"]));
    expect(traces.length).toBeGreaterThan(5);
    const ownKey = keyPem.split("\n")[2] ?? "";
    const leaks = Object.entries(sinks).flatMap(([name, text]) => [
      ...traces.filter((trace) => text.includes(trace)).map((trace) => ({ name, trace })),
      ...(name !== "identity.pem" && text.includes(ownKey) ? [{ name, trace: "the node's own key" }] : []),
    ]);
    expect(leaks).toEqual([]);
    expect(sinks["results"]).toContain("hft_[redacted]");
  });
});
