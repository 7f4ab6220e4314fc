// The task engine's SQL alone, with every durability on: claims and results per second, in batches as
// the engine makes them under load, over a database with a million queued and a million finished tasks.
// The other side is the same statements over a thousand of each: a queue should not feel its length.
// One task alone, from enqueue to result, is measured too: that is what a person waits for. The floor is bare rows on the
// same server.

import { join } from "node:path";
import { systemActor } from "@holdfast/control-plane/audit/record";
import { openOwner, openPool, type Sql, withOrg } from "@holdfast/control-plane/database/connect";
import { startEmbeddedPostgres } from "@holdfast/control-plane/database/embedded/start";
import { setUpDatabase } from "@holdfast/control-plane/database/logins";
import { openTaskPools, type TaskPools } from "@holdfast/control-plane/tasks/engine";
import { acceptResults, type ReportedResult } from "@holdfast/control-plane/tasks/transitions/accept-results";
import { insertTask } from "@holdfast/control-plane/tasks/transitions/create";
import { deliver } from "@holdfast/control-plane/tasks/transitions/deliver";
import { uuidv7 } from "@holdfast/kit/uuid";
import type { Bench, Measured } from "../bench.ts";
import { type BareRows, openBareRows } from "../floors/bare-rows.ts";
import type { Lab } from "../lab.ts";
import { median } from "../report.ts";

const MANY = 1_000_000;
const FEW = 1_000;
const NODES = 100;
/** Nodes in one claim, and results in one statement. */
const BATCH = 32;
/** Tasks of one timed stretch: few enough that the small queue does not run dry. */
const STRETCH = 800;
const STRETCHES = 10;
const ALONE = 200;

const peer = `the same statements over ${FEW} queued and ${FEW} finished tasks`;
const floors = {
  claims: `updates of ${BATCH} bare rows at a time, committed without waiting for the disk`,
  results: `updates of ${BATCH} bare rows at a time, committed to the disk, two under way`,
  round: "an insert and an update of one bare row, each committed to the disk",
};
const figures = {
  claims: "claims",
  results: "results",
  claimsFlat: "claims, with the queue's length",
  resultsFlat: "results, with the history's length",
  round: "one task alone, p50",
};

const rate = { unit: "1/s", better: "higher", peer } as const;

export const engine: Bench = {
  name: "engine",
  summary: `claims and results per second in the database, with ${MANY} tasks and with ${FEW}`,
  figures: [
    { ...rate, name: figures.claims, floor: floors.claims, target: { of: "ours", value: 5_000 } },
    { ...rate, name: figures.results, floor: floors.results, target: { of: "ours", value: 5_000 } },
    { ...rate, name: figures.claimsFlat, floor: floors.claims, target: { of: "ratio", value: 0.8 } },
    { ...rate, name: figures.resultsFlat, floor: floors.results, target: { of: "ratio", value: 0.8 } },
    {
      ...{ name: figures.round, unit: "ms", better: "lower", peer, floor: floors.round },
      target: { of: "ours", value: 2 },
    },
  ],
  passes: 7,
  prepare: async (lab) => {
    const server = await startEmbeddedPostgres({ directory: join(lab.directory(), "postgres") });
    lab.onClose(() => server.stop({ hurry: true }));
    const many = await fill(lab, server, { name: "many", tasks: MANY });
    const few = await fill(lab, server, { name: "few", tasks: FEW });
    const bare = await openBareRows(lab, server, { rows: NODES * BATCH });
    return { ours: () => measure(many), theirs: () => measure(few), floor: () => measureFloor(bare) };
  },
};

type Server = Awaited<ReturnType<typeof startEmbeddedPostgres>>;
type Filled = { pools: TaskPools; app: Sql; superuser: Sql; orgId: string; nodeIds: string[] };

/** A migrated database with as many queued and as many finished tasks, evenly over its nodes. */
async function fill(lab: Lab, server: Server, { name, tasks }: { name: string; tasks: number }): Promise<Filled> {
  const inDatabase = (url: string) => url.replace(/\/[^/]*$/, `/${name}`);
  const admin = openOwner(server.superuserUrl);
  await admin.unsafe(`CREATE DATABASE ${name} OWNER holdfast_owner`);
  await admin.end();
  const { logins } = await setUpDatabase({ ownerUrl: inDatabase(server.ownerUrl) });
  const superuser = openOwner(inDatabase(server.superuserUrl));
  const orgId = uuidv7();
  const nodeIds = Array.from({ length: NODES }, () => uuidv7());
  await superuser`INSERT INTO organizations (id, slug, name) VALUES (${orgId}, 'bench', 'Bench')`;
  await superuser`
    INSERT INTO nodes (id, org_id, name, status)
    SELECT id, ${orgId}, 'node-' || id, 'active' FROM unnest(${nodeIds}::uuid[]) AS id`;
  const began = Date.now() - 3 * 3_600_000;
  const finished = { at: began, status: "completed", superuser, orgId, nodeIds };
  await insertMany({ ...finished, count: tasks });
  await insertMany({ ...finished, count: tasks, at: began + 3_600_000, status: "queued" });
  await superuser`VACUUM ANALYZE`;
  await superuser`CHECKPOINT`;
  const pools = openTaskPools({ url: logins.systemUrl, application: "bench" });
  const app = openPool({ url: logins.appUrl, role: "holdfast_app", application: "bench", max: 1 });
  lab.onClose(async () => {
    await Promise.all([pools.swift, pools.durable, app, superuser].map((sql) => sql.end({ timeout: 1 })));
  });
  return { pools, app, superuser, orgId, nodeIds };
}

async function insertMany(options: {
  superuser: Sql;
  orgId: string;
  nodeIds: string[];
  count: number;
  /** Milliseconds since 1970 of the first: ids are in order of time. */
  at: number;
  status: string;
}): Promise<void> {
  const { superuser, count, at, status } = options;
  const done = status === "completed";
  await superuser`
    INSERT INTO tasks (id, org_id, node_id, type, params, idempotent, timeout_seconds, signature, expires_at, status,
      generation, reported, result, created_by, correlation_id, created_at, dispatched_at, finished_at)
    SELECT
      (lpad(to_hex(${at}::bigint + i * 3600000 / ${count}::bigint), 12, '0') || '7' || substr(md5(i::text), 1, 3) || '8'
        || substr(md5(i::text), 4, 15))::uuid,
      ${options.orgId}, (${options.nodeIds}::uuid[])[1 + i % ${NODES}], 'node.noop', '{"hold_ms":0}', true, 70,
      repeat('s', 150), now() + interval '1 day', ${status},
      ${done ? 1 : 0}, ${done}, ${done ? '{"echo":null}' : null}::text::json, 'bench', 'bench',
      now(), ${done ? new Date() : null}, ${done ? new Date() : null}
    FROM generate_series(0::bigint, ${count - 1}) AS i`;
}

async function measure(filled: Filled): Promise<Measured> {
  const claims: number[] = [];
  const results: number[] = [];
  for (let n = 0; n < STRETCHES; n += 1) {
    const endings = await timed(claims, STRETCH, () => claimStretch(filled));
    await timed(results, STRETCH, () => endStretch(filled, endings));
    // As many queued and finished as before.
    await refill(filled);
  }
  const alone: number[] = [];
  for (let n = 0; n < ALONE; n += 1) alone.push(await oneAlone(filled));
  const rates = { claims: median(claims), results: median(results) };
  return {
    [figures.claims]: rates.claims,
    [figures.claimsFlat]: rates.claims,
    [figures.results]: rates.results,
    [figures.resultsFlat]: rates.results,
    [figures.round]: median(alone),
  };
}

async function measureFloor(bare: BareRows): Promise<Measured> {
  const claims: number[] = [];
  const results: number[] = [];
  const batches = Array.from({ length: STRETCH / BATCH }, (_, n) => n);
  for (let n = 0; n < STRETCHES; n += 1) {
    await timed(claims, STRETCH, async () => {
      for (const batch of batches) await bare.update("swift", batch, BATCH);
    });
    await timed(results, STRETCH, async () => {
      const left = [...batches];
      const work = async () => {
        for (let batch = left.pop(); batch !== undefined; batch = left.pop())
          await bare.update("durable", batch, BATCH);
      };
      await Promise.all([work(), work()]);
    });
  }
  const alone: number[] = [];
  for (let n = 0; n < ALONE; n += 1) alone.push(await bare.twoCommits());
  const rates = { claims: median(claims), results: median(results) };
  return {
    ...{ [figures.claims]: rates.claims, [figures.claimsFlat]: rates.claims },
    ...{ [figures.results]: rates.results, [figures.resultsFlat]: rates.results },
    [figures.round]: median(alone),
  };
}

async function timed<T>(rates: number[], count: number, work: () => Promise<T>): Promise<T> {
  const began = performance.now();
  const value = await work();
  rates.push((count * 1000) / (performance.now() - began));
  return value;
}

let turn = 0;

/** One statement at a time, each for other nodes: as the engine claims. */
async function claimStretch({ pools, nodeIds }: Filled): Promise<ReportedResult[]> {
  const endings: ReportedResult[] = [];
  const held = new Map<string, { task_id: string; generation: number }[]>();
  while (endings.length < STRETCH) {
    const asking = Array.from({ length: BATCH }, (_, index) => ({
      nodeId: nodeIds[(turn + index) % NODES] ?? "",
      room: 1,
      holding: held.get(nodeIds[(turn + index) % NODES] ?? "") ?? [],
    }));
    turn += BATCH;
    const offers = await deliver(pools.swift, asking);
    if (offers.length !== BATCH) throw new Error(`claimed ${offers.length} of ${BATCH}`);
    for (const { node_id, task_id, generation } of offers) {
      endings.push(endingOf(node_id, task_id, generation));
      held.set(node_id, [...(held.get(node_id) ?? []), { task_id, generation }]);
    }
  }
  return endings;
}

/** Two statements under way, as the engine has. */
async function endStretch({ pools }: Filled, endings: ReportedResult[]): Promise<void> {
  const batches = Array.from({ length: STRETCH / BATCH }, (_, n) => endings.slice(n * BATCH, (n + 1) * BATCH));
  const work = async () => {
    for (let batch = batches.pop(); batch; batch = batches.pop()) {
      const judged = await acceptResults(pools.durable, batch);
      const accepted = judged.filter((one) => one.verdict === "accepted").length;
      if (accepted !== BATCH) throw new Error(`accepted ${accepted} of ${BATCH}`);
    }
  };
  await Promise.all([work(), work()]);
}

function endingOf(nodeId: string, taskId: string, generation: number): ReportedResult {
  const outcome = '{"status":"succeeded","result":{"echo":null}}';
  const result = '{"echo":null}';
  return {
    nodeId,
    taskId,
    generation,
    event: "result_succeeded",
    result,
    failure: null,
    timings: '{"run":1}',
    outcome,
  };
}

async function refill({ superuser, orgId, nodeIds }: Filled): Promise<void> {
  await insertMany({ superuser, orgId, nodeIds, count: STRETCH, at: Date.now(), status: "queued" });
  await superuser`
    DELETE FROM tasks WHERE id IN (SELECT id FROM tasks WHERE finished_at IS NOT NULL ORDER BY id LIMIT ${STRETCH})`;
}

/** Committed enqueue, claim, committed result, one after the other; a node of its own has nothing else queued. */
async function oneAlone({ app, pools, orgId, superuser, nodeIds }: Filled): Promise<number> {
  const nodeId = nodeIds[turn++ % NODES] ?? "";
  const task = newTask(nodeId);
  const began = performance.now();
  await withOrg(app, orgId, (tx) => insertTask(tx, task));
  const [offer] = await deliver(pools.swift, [{ nodeId, room: 1, holding: [] }]);
  if (!offer) throw new Error("nothing was claimed");
  await acceptResults(pools.durable, [endingOf(nodeId, offer.task_id, offer.generation)]);
  const milliseconds = performance.now() - began;
  await superuser`DELETE FROM tasks WHERE id = ${offer.task_id}`;
  return milliseconds;
}

function newTask(nodeId: string) {
  return {
    id: uuidv7(),
    nodeId,
    type: "node.noop",
    params: { hold_ms: 0 },
    idempotent: true,
    timeoutSeconds: 70,
    capabilities: [],
    priority: 9,
    orderKey: null,
    signature: "s".repeat(150),
    expiresAt: new Date(Date.now() + 300_000),
    by: systemActor("bench"),
    correlationId: "bench",
    allocationId: null,
    details: {},
  };
}
