// Evidence bundles through the api: what is in them, who gets them, that nothing secret is, and that they can be replayed.

import { randomBytes } from "node:crypto";
import { createAllocation } from "@holdfast/contracts/endpoints/allocations";
import { listAudit } from "@holdfast/contracts/endpoints/audit";
import { addNodeEvidence } from "@holdfast/contracts/endpoints/drift";
import {
  createEvidence,
  downloadEvidence,
  listEvidence,
  listEvidenceKeys,
} from "@holdfast/contracts/endpoints/evidence";
import { listIncidents } from "@holdfast/contracts/endpoints/incidents";
import { createTask } from "@holdfast/contracts/endpoints/tasks";
import { getTrace } from "@holdfast/contracts/endpoints/trace";
import { secretPrefix } from "@holdfast/contracts/secrets";
import type { TarFile } from "@holdfast/kit/tar";
import { uuidv7 } from "@holdfast/kit/uuid";
import { type LogStore, openLogStore } from "@holdfast/service/log-store/log-store";
import { beforeAll, describe, expect, it, vi } from "vitest";
import { scratchDirectory } from "../../testkit/agent/scratch.ts";
import { createOrg, startTestApi, type TestApi, type TestOrg, tokenFor } from "../../testkit/api/api.ts";
import { classifyWhatIsDue } from "../../testkit/api/evidence.ts";
import { enrollTestNode, sendHeartbeatFrom, type TestNode } from "../../testkit/api/nodes.ts";
import { openRoles } from "../../testkit/database/database.ts";
import { findLeaks } from "../../testkit/secrets-scan.ts";
import type { Sql } from "../src/database/connect.ts";
import { defaultPolicy } from "../src/drift/policy.ts";
import { replayBundle } from "../src/evidence-bundles/archive/replay.ts";
import { verifyBundle } from "../src/evidence-bundles/archive/verify.ts";

const KEK = randomBytes(32).toString("base64");
const PEM_LINE = randomBytes(48).toString("base64");
const random = () => randomBytes(32).toString("base64url");

/** Of every kind, each with a value that is nowhere else. */
const planted: Record<string, string> = {
  ...Object.fromEntries(Object.entries(secretPrefix).map(([kind]) => [kind, random()])),
  "PEM key": PEM_LINE,
  "password in a URL": `pw-${random()}`,
  "password in a command": `pw-${random()}`,
  "password field": `pw "quoted" ${random()}`,
  KEK,
  cookie: `session-${random()}`,
  "execution secret": `deploy key ${random()}`,
  "bearer token": random(),
};

/** As a careless message would contain them. */
function sentences(): string[] {
  return [
    ...Object.entries(secretPrefix).map(([kind, prefix]) => `got ${prefix}${planted[kind]} from the client`),
    `-----BEGIN PRIVATE KEY-----\n${PEM_LINE}\n-----END PRIVATE KEY-----\n`,
    `connect to postgres://holdfast:${planted["password in a URL"]}@db:5432/x failed`,
    `ran mysql --password=${planted["password in a command"]} --host db`,
    `the key is ${KEK}, or so`,
    `Cookie: sid=${planted["cookie"]}; path=/`,
    `authorization: Bearer ${planted["bearer token"]}`,
  ];
}

const fields = () => ({
  password: planted["password field"],
  headers: { cookie: planted["cookie"], "set-cookie": [`sid=${planted["cookie"]}`] },
  secret: planted["execution secret"],
  deep: { deeper: { client_secret: planted["execution secret"], kek: KEK } },
});

let api: TestApi;
let logs: LogStore;
let system: Sql;
let superuser: Sql;
let ours: TestOrg;
let theirs: TestOrg;
let node: TestNode;

beforeAll(async () => {
  logs = openLogStore({ directory: scratchDirectory(), mostBytes: 8 * 1024 * 1024, mostAgeMs: 86_400_000 });
  api = await startTestApi({
    logs,
    env: { HOLDFAST_KEK_BASE64: KEK, HOLDFAST_SMTP_PASSWORD: planted["password field"] ?? "" },
  });
  ({ system, superuser } = openRoles(api.database));
  ours = await createOrg(api, "ours");
  theirs = await createOrg(api, "theirs");
  node = await enrollTestNode(api, ours.id, { hostname: "host-of-ours" });
  await sendHeartbeatFrom(node, { recovery: null });
});

/** Created and downloaded as an operator, or by a token. */
async function bundleOf(subjectId: string, client = api.operator(ours.id)) {
  const created = await client(createEvidence, { body: { subject_id: subjectId } });
  const { content } = await client(downloadEvidence, { params: { evidence_id: created.id } });
  const { keys } = await api.operator()(listEvidenceKeys, {});
  const verified = verifyBundle(Buffer.from(content, "base64"), new Set(keys.map(({ kid }) => kid)));
  return { created, ...verified };
}

const read = (files: readonly TarFile[], path: string): unknown =>
  JSON.parse(String(files.find((one) => one.path === path)?.content));

describe("evidence bundles", () => {
  it("DASH-03 have tasks, diagnostics, audit, classification, logs, versions and settings of a node", async () => {
    const task = await api.operator(ours.id)(createTask, {
      params: { node_id: node.id },
      body: { type: "node.noop" },
    });
    logs.append(
      `${JSON.stringify({ level: "warn", time: new Date().toISOString(), process: "api", node_id: node.id, msg: "a line of it" })}\n`,
    );
    const { problems, manifest, files, created } = await bundleOf(node.id);
    expect(problems).toEqual([]);
    expect(created.subject).toEqual({ type: "node", id: node.id, name: node.name });
    expect(manifest?.content).toMatchObject({ bundle_id: created.id, org_id: ours.id });
    expect(files.map(({ path }) => path)).toEqual(
      expect.arrayContaining([
        "README.txt",
        "timeline.json",
        "diagnostics.json",
        "terminals.json",
        "certificates.json",
        "profile.json",
      ]),
    );
    expect(read(files, "tasks.json")).toMatchObject([{ id: task.id, status: "queued" }]);
    expect(read(files, "audit.json")).toEqual(
      expect.arrayContaining([expect.objectContaining({ action: "task.create", result: "allowed" })]),
    );
    expect(String(files.find(({ path }) => path === "logs/api.jsonl")?.content)).toContain("a line of it");
    expect(read(files, "versions.json")).toMatchObject({ holdfast: expect.any(String) });
    expect(read(files, "settings.json")).toMatchObject([
      { process: "api", settings: { HOLDFAST_KEK_BASE64: "[set]", HOLDFAST_API_PORT: "0" } },
    ]);
    expect(String(files.find(({ path }) => path === "README.txt")?.content)).toContain("tasks.json");
  });

  it("DASH-03 give the same verdicts when they are classified again", async () => {
    await api.operator(ours.id)(addNodeEvidence, { params: { node_id: node.id }, body: { ssh: "failed" } });
    const incident = await vi.waitUntil(
      async () => {
        await classifyWhatIsDue(system, defaultPolicy);
        return (await api.operator(ours.id)(listIncidents, {})).items[0];
      },
      { timeout: 60_000 },
    );
    for (const subject of [incident.id, node.id]) {
      const { files, problems } = await bundleOf(subject);
      expect(problems).toEqual([]);
      const replayed = replayBundle(files);
      expect(replayed.filter(({ incident_id }) => incident_id === incident.id).length).toBeGreaterThan(0);
      expect(replayed.flatMap(({ recorded }) => recorded)).toContain(incident.reason);
      expect(replayed.every(({ same }) => same)).toBe(true);
    }
  });

  it("AGENT-10 contain none of the secrets that were planted in logs, diagnostics and settings", async () => {
    const id = uuidv7();
    const line = (content: object) =>
      logs.append(
        `${JSON.stringify({ level: "info", time: new Date().toISOString(), correlation_id: id, node_id: node.id, ...content })}\n`,
      );
    // Past the redaction of the log itself: what a process of an older version may have kept.
    for (const msg of sentences()) line({ msg });
    line({ msg: "fields", ...fields() });
    const record = { reason: "disk_full", texts: sentences(), ...fields() };
    await superuser`
      INSERT INTO node_diagnostics (org_id, node_id, seq, record)
      VALUES (${ours.id}, ${node.id}, 99, ${JSON.stringify(record)}::text::json)`;
    await superuser`
      INSERT INTO audit_events (id, org_id, actor_type, actor_name, role, action, target_type, target_id, result, correlation_id, details)
      VALUES (${uuidv7()}, ${ours.id}, 'system', 'test', 'system', 'node.test', 'node', ${node.id}, 'allowed', ${id},
        ${JSON.stringify({ texts: sentences(), ...fields() })}::text::jsonb)`;
    for (const subject of [node.id, id]) {
      const { files } = await bundleOf(subject);
      expect(String(files.find(({ path }) => path === "logs/api.jsonl")?.content)).toContain("got hft_[redacted]");
      expect(findLeaks(files, planted)).toEqual([]);
    }
  });

  it("AGENT-10 a bundle that leaks is found by the same search", async () => {
    const { files } = await bundleOf(node.id);
    for (const [name, value] of Object.entries(planted)) {
      for (const leak of [value, JSON.stringify({ a: value }), Buffer.from(`x${value}`).toString("base64")]) {
        const leaky = [...files, { path: "leak.json", content: Buffer.from(leak) }];
        expect(findLeaks(leaky, planted), name).toContainEqual({ secret: name, path: "leak.json" });
      }
    }
  });

  it("SEC-01 a bundle of an allocation has nothing of others, and an id of others has none", async () => {
    const foreign = await enrollTestNode(api, theirs.id, { hostname: "host-of-theirs" });
    const id = uuidv7();
    const line = (content: object) =>
      logs.append(
        `${JSON.stringify({ level: "info", time: new Date().toISOString(), correlation_id: id, ...content })}\n`,
      );
    line({ node_id: foreign.id, msg: "CANARY of theirs" });
    line({ msg: "CANARY of the platform" });
    const client = api.as(await tokenFor(api, ours, "owner"));
    const [mine, beside] = await Promise.all(
      ["mine", "beside"].map((username) => client(createAllocation, { body: { node_id: node.id, username } })),
    );
    // In the course of one incident of the node that both are on.
    const [incident] = (await client(listIncidents, { query: { node_id: node.id } })).items;
    await superuser`
      INSERT INTO allocation_notifications (id, org_id, project_id, allocation_id, incident_id, state, title, message)
      SELECT ${uuidv7()}, org_id, project_id, id, ${incident?.id ?? null}, 'temporary', 'a title', 'CANARY of beside'
      FROM allocations WHERE id = ${beside?.id ?? null}`;
    await superuser`
      INSERT INTO audit_events (id, org_id, actor_type, actor_name, role, action, target_type, target_id, result, correlation_id,
        incident_id)
      VALUES (${uuidv7()}, ${ours.id}, 'system', 'CANARY', 'system', 'allocation.test', 'allocation', ${beside?.id ?? null},
        'allowed', 'an-id-of-it', ${incident?.id ?? null})`;
    const { files, problems } = await bundleOf(mine?.id ?? "", client);
    expect(problems).toEqual([]);
    expect(read(files, "allocation.json")).toMatchObject({ id: mine?.id, username: "mine" });
    const all = files.map(({ content }) => String(content)).join("\n");
    for (const other of ["CANARY", theirs.id, foreign.id, beside?.id ?? "-", "HOLDFAST_"])
      expect(all).not.toContain(other);
    for (const subject of [foreign.id, id, uuidv7()]) {
      await expect(client(createEvidence, { body: { subject_id: subject } })).rejects.toMatchObject({
        envelope: { code: "not_found" },
      });
    }
    const member = api.as(await tokenFor(api, ours, "member"));
    await expect(member(createEvidence, { body: { subject_id: node.id } })).rejects.toMatchObject({
      envelope: { code: "forbidden" },
    });
  });

  it("AUDIT-01 creating and downloading is audited, with the digest", async () => {
    const { created } = await bundleOf(node.id);
    const { items } = await api.operator(ours.id)(listAudit, { query: { action: "evidence.", target: node.id } });
    for (const action of ["evidence.create", "evidence.download"]) {
      expect(items).toContainEqual(
        expect.objectContaining({ action, details: expect.objectContaining({ sha256: created.sha256 }) }),
      );
    }
    const { items: listed } = await api.operator(ours.id)(listEvidence, { query: { subject_id: node.id } });
    expect(listed[0]).toMatchObject({ id: created.id, sha256: created.sha256 });
  });

  it("DASH-08 a trace has log lines, also of an id that nothing else knows; foreign and unknown look the same", async () => {
    const client = api.as(await tokenFor(api, ours, "owner"));
    const [known, foreign] = [uuidv7(), uuidv7()];
    const line = (content: object) =>
      logs.append(`${JSON.stringify({ level: "error", time: new Date().toISOString(), ...content })}\n`);
    line({ correlation_id: known, org_id: ours.id, msg: "request failed", code: "internal_error" });
    line({ correlation_id: foreign, org_id: theirs.id, msg: "request failed" });
    const trace = await client(getTrace, { params: { trace_id: known } });
    expect(trace).toMatchObject({
      found_as: ["log"],
      items: [{ kind: "log", title: "error: request failed", by: "api" }],
    });
    const refusal = async (id: string) =>
      client(getTrace, { params: { trace_id: id } }).catch(({ envelope: { correlation_id: _, ...rest } }) => rest);
    expect(await refusal(foreign)).toEqual(await refusal(uuidv7()));
    expect(await refusal(foreign)).toMatchObject({ code: "not_found" });
  });
});
