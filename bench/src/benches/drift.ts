// What it takes to know what is wrong with 10,000 nodes: one classification, a fault of the whole fleet, a change of one node,
// and watching while nothing happens. In one process on one embedded PostgreSQL, as a worker does it; and a change on an open page, in a
// complete installation.

import { join } from "node:path";
import { openOwner, openPool, type Sql } from "@holdfast/control-plane/database/connect";
import { startEmbeddedPostgres } from "@holdfast/control-plane/database/embedded/start";
import { setUpDatabase } from "@holdfast/control-plane/database/logins";
import { classify } from "@holdfast/control-plane/drift/classify/classify";
import type { Observation } from "@holdfast/control-plane/drift/evidence/observation";
import { readEvidence } from "@holdfast/control-plane/drift/evidence/read";
import { recordObservations } from "@holdfast/control-plane/drift/evidence/write";
import { defaultPolicy as policy } from "@holdfast/control-plane/drift/policy";
import { classifyDue } from "@holdfast/control-plane/drift/verdicts/classify-due";
import { findUnnoticed } from "@holdfast/control-plane/drift/verdicts/find-unnoticed";
import { uuidv7 } from "@holdfast/kit/uuid";
import type { Bench, Measured } from "../bench.ts";
import { openPage } from "../drift/open-page.ts";
import type { Lab } from "../lab.ts";
import { median } from "../report.ts";

const NODES = 10_000;
const CLASSIFICATIONS = 20_000;
const CHANGES = 100;
const PAGE_CHANGES = 20;
const TURNS_AT_REST = 20;
/** What is stored of a node that changes all the time: kinds and keys, with as many changes as are kept. */
const KINDS = 6;
const KEPT = 20;

const figures = {
  one: "one classification",
  fault: `a fault of ${NODES} nodes, until all are classified`,
  change: "a change of one node, until it is classified, p50",
  page: "a change of one node, until an open page shows it, p50",
  rest: "watching at rest",
  size: `evidence of ${NODES} nodes that all change, a day`,
};
const peers = {
  one: "reading the same evidence from JSON",
  fault: "the rows alone: read and rewritten in the same batches",
  change: "two commits of bare rows",
  page: "the two requests alone",
  rest: "counting the nodes once a second",
  size: "a bare row for each",
};

export const drift: Bench = {
  name: "drift",
  summary: `naming the causes of ${NODES} nodes`,
  figures: [
    { name: figures.one, unit: "µs", better: "lower", peer: peers.one, target: { of: "ours", value: 50 } },
    { name: figures.fault, unit: "s", better: "lower", peer: peers.fault, target: { of: "ours", value: 5 } },
    { name: figures.change, unit: "ms", better: "lower", peer: peers.change },
    { name: figures.page, unit: "ms", better: "lower", peer: peers.page, target: { of: "ours", value: 250 } },
    {
      name: figures.rest,
      unit: "% of a core",
      better: "lower",
      peer: peers.rest,
      target: { of: "ours", value: 2 },
    },
    { name: figures.size, unit: "MB", better: "lower", peer: peers.size, target: { of: "ours", value: 2_000 } },
  ],
  passes: 3,
  prepare: async (lab) => {
    const fleet = await openFleet(lab);
    const sizes = await sizesOf(fleet);
    const page = await openPage(lab);
    const shown: number[] = [];
    return {
      ours: async () => {
        const changes = await page.changes(PAGE_CHANGES);
        shown.push(...changes);
        return { ...(await measureOurs(fleet)), [figures.page]: median(changes), [figures.size]: sizes.ours };
      },
      theirs: async () => ({
        ...(await measureTheirs(fleet)),
        ...{ [figures.page]: median(await page.requests(PAGE_CHANGES)), [figures.size]: sizes.theirs },
      }),
      notes: () => {
        const sorted = shown.toSorted((a, b) => a - b);
        const at = (part: number) => Math.round(sorted[Math.floor((sorted.length - 1) * part)] ?? 0);
        return [
          `An open page showed ${sorted.length} changes: p50 ${at(0.5)}, p95 ${at(0.95)}, last ${at(1)} ms.`,
        ];
      },
    };
  },
};

type Fleet = { system: Sql; superuser: Sql; nodeIds: string[] };

async function openFleet(lab: Lab): Promise<Fleet> {
  const server = await startEmbeddedPostgres({ directory: join(lab.directory(), "postgres") });
  lab.onClose(() => server.stop({ hurry: true }));
  const { logins } = await setUpDatabase({ ownerUrl: server.ownerUrl });
  const superuser = openOwner(server.superuserUrl.replace(/\/[^/]*$/, new URL(server.ownerUrl).pathname));
  const system = openPool({ url: logins.systemUrl, role: "holdfast_system", application: "bench", max: 4 });
  lab.onClose(async () => void (await Promise.all([system, superuser].map((sql) => sql.end({ timeout: 1 })))));
  const orgId = uuidv7();
  const nodeIds = Array.from({ length: NODES }, () => uuidv7());
  await superuser`INSERT INTO organizations (id, slug, name) VALUES (${orgId}, 'bench', 'Bench')`;
  await superuser`
    INSERT INTO nodes (id, org_id, name, status, status_changed_at)
    SELECT id, ${orgId}, 'node-' || id, 'active', now() - interval '1 day' FROM unnest(${nodeIds}::uuid[]) AS id`;
  await superuser`
    INSERT INTO node_presence (node_id, org_id, heartbeat_at, instance_id, boot_id, clock_skew_ms, heartbeat)
    SELECT id, ${orgId}, now(), id, 'boot', 12, json_build_object('findings', '[]'::json, 'padding', repeat('x', 900))
    FROM unnest(${nodeIds}::uuid[]) AS id`;
  await superuser`
    INSERT INTO node_certificates (serial, org_id, node_id, key_sha256, chain, issued_for, not_before, not_after)
    SELECT md5(id::text), ${orgId}, id, '\\x00', 'chain', 'enrollment', now(), now() + interval '1 day'
    FROM unnest(${nodeIds}::uuid[]) AS id`;
  const observedAt = new Date();
  for (let from = 0; from < NODES; from += 500) {
    await recordObservations(
      system,
      nodeIds.slice(from, from + 500).map((nodeId) => ({
        ...{ nodeId, kind: "diagnostic", value: "process_alive", observer: "host", observedAt },
      })),
    );
  }
  await superuser`CREATE TABLE bare_rows (id uuid PRIMARY KEY, n integer NOT NULL, text text)`;
  await superuser`INSERT INTO bare_rows SELECT id, 0, repeat('x', 300) FROM unnest(${nodeIds}::uuid[]) AS id`;
  await superuser`VACUUM ANALYZE`;
  await watchOnce({ system, superuser, nodeIds });
  return { system, superuser, nodeIds };
}

async function watchOnce({ system }: Fleet): Promise<number> {
  await findUnnoticed(system, policy);
  return (await classifyDue(system, policy)).classified;
}

async function measureOurs(fleet: Fleet): Promise<Measured> {
  const { system, superuser, nodeIds } = fleet;
  const allReport = () => superuser`UPDATE node_presence SET heartbeat_at = now(), disconnected_at = NULL`;
  await allReport();
  await watchOnce(fleet);
  const evidence = (await readEvidence(system, nodeIds.slice(0, 1), [])).get(nodeIds[0] ?? "") ?? [];
  const one = timeEach(CLASSIFICATIONS, (n) => classify(evidence, policy, Date.now() + n));

  await superuser`UPDATE node_presence SET heartbeat_at = now() - interval '10 minutes'`;
  const began = performance.now();
  const classified = await watchOnce(fleet);
  const fault = (performance.now() - began) / 1000;
  if (classified !== NODES) throw new Error(`${classified} of ${NODES} nodes were classified`);
  await allReport();
  await watchOnce(fleet);

  const changes: number[] = [];
  for (let n = 0; n < CHANGES; n += 1) {
    const from = performance.now();
    const value = n % 2 === 0 ? "failed" : "succeeded";
    await recordObservations(system, [
      { nodeId: nodeIds[7] ?? "", kind: "ssh", value, observer: "operator", observedAt: new Date() },
    ]);
    await classifyDue(system, policy);
    changes.push(performance.now() - from);
  }
  const [searching, classifying]: [number[], number[]] = [[], []];
  for (let n = 0; n < TURNS_AT_REST; n += 1) {
    await allReport();
    const from = performance.now();
    await findUnnoticed(system, policy);
    const between = performance.now();
    await classifyDue(system, policy);
    searching.push(between - from);
    classifying.push(performance.now() - between);
  }
  // Every five seconds, and every second; in percent of the time.
  const rest = (median(searching) / 5 + median(classifying)) / 10;
  return {
    ...{ [figures.one]: one, [figures.fault]: fault },
    ...{ [figures.change]: median(changes), [figures.rest]: rest },
  };
}

async function measureTheirs({ system, superuser, nodeIds }: Fleet): Promise<Measured> {
  const text = JSON.stringify((await readEvidence(system, nodeIds.slice(0, 1), [])).get(nodeIds[0] ?? ""));
  const one = timeEach(CLASSIFICATIONS, () => (JSON.parse(text) as Observation[]).length);
  const began = performance.now();
  for (let from = 0; from < NODES; from += 500) {
    const some = nodeIds.slice(from, from + 500);
    await superuser`SELECT * FROM bare_rows WHERE id = ANY(${some}::uuid[])`;
    await superuser`UPDATE bare_rows SET n = n + 1 WHERE id = ANY(${some}::uuid[])`;
  }
  const fault = (performance.now() - began) / 1000;
  const changes: number[] = [];
  for (let n = 0; n < CHANGES; n += 1) {
    const from = performance.now();
    for (const _ of [1, 2]) await superuser`UPDATE bare_rows SET n = n + 1 WHERE id = ${nodeIds[7] ?? ""}`;
    changes.push(performance.now() - from);
  }
  const rest: number[] = [];
  for (let n = 0; n < TURNS_AT_REST; n += 1) {
    const from = performance.now();
    await superuser`SELECT count(*) FROM node_presence`;
    rest.push(performance.now() - from);
  }
  return {
    ...{ [figures.one]: one, [figures.fault]: fault },
    ...{ [figures.change]: median(changes), [figures.rest]: median(rest) / 10 },
  };
}

/** In megabytes, of the most that is kept of every node. */
async function sizesOf({ superuser }: Fleet): Promise<{ ours: number; theirs: number }> {
  const size = async (table: string) => {
    const [row] = await superuser<{ bytes: string }[]>`SELECT pg_total_relation_size(${table}::regclass) AS bytes`;
    return Number(row?.bytes ?? 0) / 1_000_000;
  };
  await superuser.unsafe("CREATE TABLE filled (LIKE node_observations INCLUDING ALL)");
  await superuser.unsafe(
    "CREATE TABLE bare_filled (id uuid PRIMARY KEY, at timestamptz NOT NULL, value text NOT NULL)",
  );
  await superuser`
    INSERT INTO filled (id, org_id, node_id, kind, key, value, observer, detail, observed_at, seen_at, correlation_id, replaced_at)
    SELECT gen_random_uuid(), n.org_id, n.id, 'finding', 'reason_' || kind, 'present', 'agent',
      '{"text":"a sentence of the usual length about it"}', now() - i * interval '1 hour', now(), gen_random_uuid()::text,
      CASE WHEN i > 1 THEN now() END
    FROM nodes n, generate_series(1, ${KINDS}) AS kind, generate_series(1, ${KEPT}) AS i`;
  await superuser`INSERT INTO bare_filled SELECT id, observed_at, value FROM filled`;
  const sizes = { ours: await size("filled"), theirs: await size("bare_filled") };
  await superuser.unsafe("DROP TABLE filled, bare_filled");
  return sizes;
}

/** In microseconds. */
function timeEach(count: number, work: (n: number) => unknown): number {
  const began = performance.now();
  for (let n = 0; n < count; n += 1) work(n);
  return ((performance.now() - began) * 1000) / count;
}
