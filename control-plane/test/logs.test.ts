// Log lines through the api: asked of every process, merged, and confined to the caller's organization.

import { createClient } from "@holdfast/contracts/client";
import { findLogs } from "@holdfast/contracts/endpoints/logs";
import { getNode } from "@holdfast/contracts/endpoints/nodes";
import { readSettings } from "@holdfast/kit/settings";
import { uuidv7 } from "@holdfast/kit/uuid";
import { createLog } from "@holdfast/service/log";
import { type LogStore, openLogStore } from "@holdfast/service/log-store/log-store";
import { beforeAll, describe, expect, it } from "vitest";
import { scratchDirectory } from "../../testkit/agent/scratch.ts";
import { createOrg, startTestApi, type TestApi, type TestOrg, tokenFor } from "../../testkit/api/api.ts";
import { enrollTestNode } from "../../testkit/api/nodes.ts";
import { openRoles } from "../../testkit/database/database.ts";
import type { Sql } from "../src/database/connect.ts";
import { loginEnvironment } from "../src/database/settings.ts";
import { startWorker } from "../src/worker/main.ts";
import { workerSettings } from "../src/worker/settings.ts";

let api: TestApi;
let replica: TestApi;
let logs: LogStore;
let system: Sql;
let ours: TestOrg;
let theirs: TestOrg;
let tokens: { ours: string; theirs: string };

const keep = () =>
  openLogStore({ directory: scratchDirectory(), mostBytes: 8 * 1024 * 1024, mostAgeMs: 86_400_000 });

beforeAll(async () => {
  logs = keep();
  api = await startTestApi({ logs });
  replica = await startTestApi({ database: api.database, logs: keep() });
  ({ system } = openRoles(api.database));
  ours = await createOrg(api, "ours");
  theirs = await createOrg(api, "theirs");
  tokens = { ours: await tokenFor(api, ours, "owner"), theirs: await tokenFor(api, theirs, "owner") };
});

/** A read that is refused: no audit event is written, so its id is in the log alone. */
async function failingRead(token: string, correlationId: string, at = api): Promise<void> {
  const send: typeof fetch = (input, init) =>
    fetch(input, { ...init, headers: { ...(init?.headers as object), "x-correlation-id": correlationId } });
  const client = createClient({ baseUrl: at.url, token, fetch: send });
  await expect(client(getNode, { params: { node_id: uuidv7() } })).rejects.toThrow();
}

describe("log lines through the api", () => {
  it("DASH-08 finds the line behind an error, whichever replica wrote it", async () => {
    const [one, other] = [uuidv7(), uuidv7()];
    await failingRead(tokens.ours, one);
    await failingRead(tokens.ours, other, replica);
    for (const id of [one, other]) {
      const { items, replicas } = await api.as(tokens.ours)(findLogs, { query: { id } });
      expect(items).toMatchObject([
        {
          process: "api",
          level: "info",
          message: "request",
          correlation_id: id,
          fields: { status: 404, org_id: ours.id },
        },
      ]);
      expect(replicas.map(({ state }) => state)).toEqual(["answered", "answered"]);
    }
  });

  it("SEC-01 an id of another organization has no lines, like one that does not exist", async () => {
    const id = uuidv7();
    for (let count = 0; count < 3; count += 1) await failingRead(tokens.theirs, id);
    const foreign = await api.as(tokens.ours)(findLogs, { query: { id, limit: 2 } });
    const unknown = await api.as(tokens.ours)(findLogs, { query: { id: uuidv7(), limit: 2 } });
    expect(foreign.items).toEqual([]);
    expect(foreign).toEqual(unknown);
    const own = await api.as(tokens.theirs)(findLogs, { query: { id, limit: 2 } });
    expect(own).toMatchObject({ truncated: true, items: [{ correlation_id: id }, { correlation_id: id }] });
  });

  it("SEC-01 using the id of another organization shows only the own lines under it", async () => {
    const id = uuidv7();
    await failingRead(tokens.theirs, id);
    await failingRead(tokens.ours, id);
    const { items } = await api.as(tokens.ours)(findLogs, { query: { id } });
    expect(items.map(({ fields }) => fields["org_id"])).toEqual([ours.id]);
    const all = await api.operator(ours.id)(findLogs, { query: { id } });
    expect(all.items.map(({ fields }) => fields["org_id"])).toEqual([theirs.id, ours.id]);
  });

  it("SEC-01 a line without an organization is shown if it names something of the caller's and nothing else", async () => {
    const [mine, foreign] = [await enrollTestNode(api, ours.id), await enrollTestNode(api, theirs.id)];
    const id = uuidv7();
    const line = (fields: object) =>
      logs.append(
        `${JSON.stringify({ level: "warn", time: new Date().toISOString(), correlation_id: id, ...fields })}\n`,
      );
    line({ node_id: mine.id, msg: "of our node" });
    line({ node_id: foreign.id, msg: "of their node" });
    line({ node_id: mine.id, session_id: uuidv7(), msg: "of our node, and of something else" });
    line({ msg: "of nobody" });
    line({ org_id: ours.id, node_id: foreign.id, msg: "contradicts itself" });
    const seen = async (token: string) =>
      (await api.as(token)(findLogs, { query: { id } })).items.map(({ message }) => message);
    expect(await seen(tokens.ours)).toEqual(["of our node"]);
    expect(await seen(tokens.theirs)).toEqual(["of their node"]);
    expect((await api.operator(ours.id)(findLogs, { query: { id } })).items).toHaveLength(5);
  });

  it("DASH-08 needs the scope of those who operate nodes", async () => {
    const member = await tokenFor(api, ours, "member");
    await expect(api.as(member)(findLogs, { query: { id: uuidv7() } })).rejects.toMatchObject({
      envelope: { code: "forbidden" },
    });
  });

  it("DASH-08 names a process that keeps nothing, and one that does not answer", async () => {
    const settings = readSettings(workerSettings, loginEnvironment(api.database));
    const worker = await startWorker(settings, createLog({ process: "worker", level: "silent" }));
    const gone = uuidv7();
    await system`INSERT INTO processes (id, kind, version, hostname) VALUES (${gone}, 'worker', '0', 'lost-host')`;
    const { replicas } = await api.operator(ours.id)(findLogs, { query: { id: uuidv7() } });
    await system`DELETE FROM processes WHERE id = ${gone}`;
    expect(replicas.find(({ replica: one }) => one === gone)).toMatchObject({
      ...{ process: "worker", host: "lost-host", state: "unreachable" },
    });
    const others = replicas.filter(({ replica: one }) => one !== gone);
    expect(others.map(({ process, state }) => `${process} ${state}`).toSorted()).toEqual([
      "api answered",
      "api answered",
      "worker keeps_none",
    ]);
    await worker.stop();
    const left = await system`SELECT FROM log_requests`;
    expect(left).toHaveLength(0);
  });

  it("DASH-08 asks only processes of the kind that was named, and limits the time", async () => {
    const id = uuidv7();
    await failingRead(tokens.ours, id);
    const asked = (query: object) => api.as(tokens.ours)(findLogs, { query: { id, ...query } });
    expect((await asked({ process: "worker" })).items).toEqual([]);
    expect((await asked({ process: "api" })).items).toHaveLength(1);
    expect((await asked({ since: new Date(Date.now() + 60_000).toISOString() })).items).toEqual([]);
    expect((await asked({ until: new Date(Date.now() - 60_000).toISOString() })).items).toEqual([]);
  });
});
