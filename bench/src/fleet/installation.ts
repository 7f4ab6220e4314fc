// What the `fleet` bench runs: PostgreSQL, one api process that can be killed and started again, and the simulated
// nodes in a process of their own.

import { createHash, randomBytes } from "node:crypto";
import http from "node:http";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { openPool, type Sql } from "@holdfast/control-plane/database/connect";
import { startEmbeddedPostgres } from "@holdfast/control-plane/database/embedded/start";
import type { WorldClock } from "@holdfast/control-plane/database/embedded/testing/world-clock";
import { setUpDatabase } from "@holdfast/control-plane/database/logins";
import { loginEnvironment } from "@holdfast/control-plane/database/settings";
import { openBareRows } from "../floors/bare-rows.ts";
import type { Lab } from "../lab.ts";
import { freePort } from "../ports.ts";
import { processorSeconds } from "../processes.ts";
import { type RunningProgram, root } from "../program.ts";
import type { FleetApi, FleetLive, FleetOrder, FleetOutcome } from "../programs/fleet-api.ts";
import type { FleetNodes, NodesState } from "../programs/fleet-nodes.ts";
import { median } from "../report.ts";

/** Until the last had joined; the second is processor time of the api. */
export type Growth = { seconds: number; apiSeconds: number };

/** How many tasks of the bench ended well, were delivered more than once, and had a result after their end. */
export type StoredTasks = { completed: number; again: number; late: number };

/** Nodes in a process of their own. The one that plays thousands which come back leaves nodes among them waiting, as no host does. */
export type Witnesses = Pick<Installation, "connectedIds" | "nodes">;

export type Installation = {
  apiPid(): number;
  /** Bytes of objects that the api has in use. It collects garbage for that, which takes it a while. */
  liveBytes(): Promise<number>;
  /** Joins until there are so many and all of them are connected. */
  grow(agents: number): Promise<Growth>;
  nodes(): Promise<NodesState>;
  /** Ids of nodes that are connected now, as far as they know, and were heard since. */
  connectedIds(most: number, since?: number): Promise<string[]>;
  /** Joins so many witnesses. They are not counted among the nodes. */
  addWitnesses(agents: number): Promise<Witnesses>;
  run(order: FleetOrder): Promise<FleetOutcome>;
  storedTasks(): Promise<StoredTasks>;
  /** Milliseconds of two durable commits of one row in the same PostgreSQL, at the median. */
  twoCommits(): Promise<number>;
  /** kill -9, and another process in its place. */
  replaceApi(meanwhile?: () => void): Promise<void>;
  /** Of the server that all of its processes belong to. */
  databasePid: number;
  /** For what only the database knows. */
  system: Sql;
};

const COMMITS = 200;
/** Beyond any fleet. */
const FIRST_WITNESS = 100_001;
/** As `holdfast` does it: an api is not started without. */
const compileCache = join(root, "node_modules/.cache/holdfast");

const programAt = (name: string) => fileURLToPath(new URL(`../programs/${name}.ts`, import.meta.url));

export type InstallationOptions = {
  /** Of PostgreSQL, api and nodes alike. */
  clock?: WorldClock;
  /** Of the api, beside those that it needs. */
  settings?: Record<string, string>;
};

export async function startInstallation(lab: Lab, options: InstallationOptions = {}): Promise<Installation> {
  const { clock } = options;
  const database = await startEmbeddedPostgres({
    directory: join(lab.directory(), "postgres"),
    ...(clock ? { binaries: clock.binaries } : {}),
  });
  lab.onClose(() => database.stop({ hurry: true }));
  const { logins } = await setUpDatabase({ ownerUrl: database.ownerUrl });
  const system = openPool({ url: logins.systemUrl, role: "holdfast_system", application: "bench", max: 1 });
  lab.onClose(() => system.end({ timeout: 1 }));
  const token = `hfo_${randomBytes(32).toString("base64url")}`;
  const port = await freePort();
  const settings = {
    HOLDFAST_API_PORT: String(port),
    HOLDFAST_NODE_API_PORT: String(await freePort()),
    ...loginEnvironment(logins),
    HOLDFAST_MIGRATE_ON_START: "no",
    HOLDFAST_KEK_BASE64: randomBytes(32).toString("base64"),
    HOLDFAST_OPERATOR_TOKEN_SHA256: createHash("sha256").update(token).digest("hex"),
    ...options.settings,
  };
  const start = async (name: string, ours: FleetApi | FleetNodes, args: string[] = []) => {
    const program = lab.start({
      command: process.execPath,
      args: [...args, programAt(name)],
      env: { BENCH_OURS: JSON.stringify(ours), NODE_COMPILE_CACHE: compileCache, ...clock?.env },
    });
    const { url } = (await program.ready) as { url: string };
    return { program, url };
  };
  const startApi = () => start("fleet-api", { settings }, process.env["HOLDFAST_BENCH_API_FLAGS"]?.split(" "));
  let api = await startApi();
  const link = process.env["HOLDFAST_BENCH_LINK"] === "poll" ? "poll" : "stream";
  const startNodes = async (first: number) => {
    const { url } = await start("fleet-nodes", { apiUrl: `http://127.0.0.1:${port}`, token, link, first });
    const nodes = async () => (await ask(`${url}/state`)) as NodesState;
    return {
      nodes,
      connectedIds: async (most: number, since = 0) =>
        (await ask(`${url}/ids?most=${most}&since=${since}`)) as string[],
      join: (agents: number) => ask(`${url}/grow?agents=${agents}`),
      async connected(agents: number) {
        while ((await nodes()).connected < agents) await new Promise((resolve) => setTimeout(resolve, 100));
      },
    };
  };
  const fleet = await startNodes(1);

  return {
    apiPid: () => api.program.pid,
    liveBytes: async () => ((await ask(`${api.url}/live`)) as FleetLive).live,
    nodes: fleet.nodes,
    connectedIds: fleet.connectedIds,
    async grow(agents) {
      const started = { at: performance.now(), processor: processorSeconds(api.program.pid) };
      await fleet.join(agents);
      const seconds = (performance.now() - started.at) / 1000;
      const apiSeconds = processorSeconds(api.program.pid) - started.processor;
      await fleet.connected(agents);
      return { seconds, apiSeconds };
    },
    async addWitnesses(agents) {
      const witnesses = await startNodes(FIRST_WITNESS);
      await witnesses.join(agents);
      await witnesses.connected(agents);
      return witnesses;
    },
    async storedTasks() {
      const [row] = await system<StoredTasks[]>`
        SELECT count(*) FILTER (WHERE t.status = 'completed')::integer AS completed,
          count(*) FILTER (WHERE t.generation > 1)::integer AS again,
          (SELECT count(*)::integer FROM late_results) AS late
        FROM tasks t WHERE t.correlation_id = 'bench'`;
      return row ?? { completed: 0, again: 0, late: 0 };
    },
    async twoCommits() {
      const { twoCommits } = await openBareRows(lab, database, { rows: 1 });
      const each: number[] = [];
      for (let done = 0; done < COMMITS; done += 1) each.push(await twoCommits());
      return median(each);
    },
    run: async (order) => (await ask(api.url, order)) as FleetOutcome,
    async replaceApi(meanwhile) {
      await kill(api.program);
      meanwhile?.();
      api = await startApi();
    },
    databasePid: database.pid,
    system,
  };
}

async function kill(program: RunningProgram): Promise<void> {
  process.kill(program.pid, "SIGKILL");
  // It rejects with how it ended.
  await program.output.catch(() => undefined);
}

/** Not `fetch`, which gives up on whoever takes minutes to answer. */
function ask(url: string, body?: unknown): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const request = http.request(url, { method: "POST", agent: false }, async (response) => {
      let text = "";
      for await (const part of response.setEncoding("utf8")) text += part;
      if (response.statusCode === 200) resolve(JSON.parse(text));
      else reject(new Error(text));
    });
    request.once("error", reject);
    request.end(body === undefined ? "" : JSON.stringify(body));
  });
}
