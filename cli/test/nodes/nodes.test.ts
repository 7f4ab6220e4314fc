// From `holdfast up` to a result of this machine as its first node: real processes, real mutual TLS.

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { getNode, type Node } from "@holdfast/contracts/endpoints/nodes";
import { type CanaryResult, getPlatformStatus } from "@holdfast/contracts/endpoints/platform";
import { getTask, listTasks, type Task } from "@holdfast/contracts/endpoints/tasks";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openInstallation, type Started, until } from "../../../testkit/processes/holdfast.ts";
import { errorOf, type FirstNode, openFirstNode } from "../support/first-node.ts";

let first: FirstNode;
let node: Node;
beforeAll(async () => {
  first = await openFirstNode();
  node = first.node;
});
afterAll(() => first.cleanUp());

const run: FirstNode["run"] = (...args) => first.run(...args);
const json: FirstNode["json"] = (args) => first.json(args);
const failure: FirstNode["failure"] = (args) => first.failure(args);

describe("this machine", () => {
  it("OPS-01 is the first node of its own installation, active and online", async () => {
    const { items } = await json<{ items: Node[] }>(["node", "list"]);
    expect(items).toMatchObject([{ id: node.id, status: "active", connection: "online", attention: [] }]);
    const { agent, ...parts } = await json<Record<string, { ok: boolean }>>(["status"]);
    expect(agent).toMatchObject({ ok: true, node_id: node.id, url: expect.stringMatching(/^http:/) });
    expect(Object.keys(parts)).toEqual(["api", "gateway", "worker", "database", "ingress", "background"]);
    expect(first.installation.upFile()).toMatchObject({
      node_api_url: (await first.up.ready).node_api_url,
      agent: { node_id: node.id, node_name: node.name, state_dir: join(first.installation.dataDir, "agent") },
    });
  });

  it("ID-11 accepts certificates of its own CA at the addresses that it publishes", async () => {
    const accepted = ["node_api accepted", "node_terminal accepted"];
    const inWords = (canaries: readonly CanaryResult[]) =>
      canaries.map(({ endpoint, state }) => `${endpoint} ${state}`).toSorted();
    const canaries = async () => inWords((await first.operator()(getPlatformStatus, {})).canaries);
    await expect.poll(canaries).toEqual(accepted);
    const { ingress } = await json<{ ingress: { canaries: CanaryResult[] } }>(["status"]);
    expect(inWords(ingress.canaries)).toEqual(accepted);
    expect((await run(["status"])).stdout).toMatch(
      /ingress\s+● healthy\s+Certificates of the CA are accepted at https:/,
    );
    expect((await run(["fleet"])).stdout).toMatch(/^1 node: 1 healthy\./);
    expect((await run(["fleet", "forecast"])).stdout).toMatch(
      /^If the control plane stays down until .* 1 of 1 node loses/,
    );
  });

  it("AGENT-08 is shown with what its agent found", async () => {
    const { stdout } = await run(["node", "show", node.name]);
    expect(stdout).toContain(`${node.name}\n`);
    expect(stdout).toMatch(/connection\s+● online/);
    expect(stdout).toMatch(/certificate\s+expires \d{4}-/);
    const listed = await run(["node", "list"]);
    expect(listed.stdout).toMatch(/^1 node: 1 \w+\n/);
    expect(listed.stdout).toMatch(/\nNAME\s+STATUS\s+CONNECTION/);
    expect((await run(["node", "list", "--search", "no-such"])).stdout).toContain("No node matches.");
    const page = await json<{ items: Node[]; next_cursor: null }>([
      "node",
      "list",
      "--state",
      "present",
      "--limit",
      "1",
    ]);
    expect(page).toMatchObject({ items: [{ name: node.name }], next_cursor: null });
  });

  it("DRIFT-01 uses the addresses of the profile, and is shown with them and with where it is", async () => {
    const detail = () => first.operator()(getNode, { params: { node_id: node.id } });
    const { node_api_url } = await first.up.ready;
    await until(async () => (await detail()).setup !== null);
    expect((await detail()).setup).toMatchObject({
      urls: { node_api: node_api_url, node_terminal: expect.stringMatching(/^https:/) },
      install_root: expect.stringMatching(/^\//),
    });
    const parts = async () =>
      (await json<{ parts: { part: string; state: string }[] }>(["node", "explain", node.name])).parts;
    const endpoint = async () => (await parts()).find(({ part }) => part === "endpoint_identity")?.state;
    await until(async () => (await endpoint()) === "in_order");
    const set = await run(["node", "set", node.name, "--provider", "acme", "--network-side", "same-lan"]);
    expect(set.stdout).toBe(`${node.name}: provider acme, network side same-lan.\n`);
    const { stdout } = await run(["node", "show", node.name]);
    expect(stdout).toMatch(/\n {2}provider +acme\n {2}network side +same-lan\n/);
    expect(stdout).toContain(`api ${node_api_url}`);
    expect(await json(["node", "set", node.name, "--provider", ""])).toMatchObject({ provider: null });
    expect(await failure(["node", "set", node.name])).toMatchObject({
      message: expect.stringContaining("Nothing to set"),
    });
  });

  it("DIAG-01 is probed by itself soon after it has joined, which is no task of anybody", async () => {
    await until(async () => (await first.operator()(getNode, { params: { node_id: node.id } })).health !== null);
    const { stdout } = await run(["node", "show", node.name]);
    expect(stdout).toMatch(/\n {2}health, probed \d+(\.\d)? \w+ ago\n {4}kernel +\S+, up /);
    expect(stdout).toMatch(/\n {4}KVM +\S.*\n {4}VFIO .*IOMMU groups\n {4}GPUs +\S.*\n {4}links +\S/);
    expect((await json<{ items: Task[] }>(["task", "list", "--node", node.name])).items).toEqual([]);
    const probes = await json<{ items: Task[] }>(["task", "list", "--type", "diag.health_probe"]);
    expect(probes.items).toMatchObject([{ created_by: "holdfast", priority: 0, status: "completed" }]);
    const { items } = await json<{ items: { actor_name: string }[] }>(["audit", "list", "--action", "node.probe"]);
    expect(items).toMatchObject([{ actor_type: "system", target_id: node.id }]);
  });

  it("OPS-01 stays the same node over a restart, and its agent comes back after a kill", async () => {
    const killed = first.installation.upFile().children["agent"]?.pid ?? 0;
    process.kill(killed, "SIGKILL");
    await until(() => first.installation.upFile().children["agent"]?.pid !== killed);
    first.up.process.kill("SIGTERM");
    await first.up.ended;
    await first.installation.up().ready;
    await until(async () => (await run(["task", "run", node.name, "node.noop", "--expires", "60"])).code === 0);
    const { items } = await json<{ items: Node[] }>(["node", "list"]);
    expect(items.map(({ id }) => id)).toEqual([node.id]);
  });

  it("OPS-01 becomes none when told so", async () => {
    const other = openInstallation();
    try {
      const { agent } = await other.up({ HOLDFAST_UP_AGENT: "no" }).ready;
      expect(agent).toBeNull();
      const status = await other.run(["status", "--json"]);
      expect(JSON.parse(status.stdout)).toMatchObject({ agent: { ok: true, node_id: null } });
      expect((await other.run(["node", "list"])).stdout).toContain("No nodes yet.");
    } finally {
      await other.cleanUp();
    }
  });

  it("OPS-01 that cannot become one does not keep the server from running", async () => {
    const other = openInstallation();
    const taken = join(first.scratch, "a-file");
    writeFileSync(taken, "");
    try {
      const started = other.up({ HOLDFAST_AGENT_STATE_DIR: taken });
      await started.ready;
      await until(() => started.printed().stderr.includes("This machine could not be enrolled as a node"));
      const { code, stdout } = await other.run(["status", "--json"]);
      expect(code).toBe(1);
      expect(JSON.parse(stdout)).toMatchObject({ api: { ok: true }, agent: { ok: false } });
      expect(JSON.parse(stdout).agent.reason).toContain(taken);
    } finally {
      await other.cleanUp();
    }
  });
});

describe("holdfast task run", () => {
  it("TASK-01 prints the typed result", async () => {
    const task = await json<Task>(["task", "run", node.id, "diag.health_probe"]);
    expect(task).toMatchObject({ type: "diag.health_probe", status: "completed", node_id: node.id });
    expect(task.result).toMatchObject({ kernel: expect.any(String), memory: { total_bytes: expect.any(Number) } });
    const forPeople = await run(["task", "run", node.name, "diag.health_probe"]);
    expect(forPeople).toMatchObject({ code: 0, stderr: "" });
    expect(forPeople.stdout).toMatch(/^kernel: \S+\n/);
    const shown = await run(["task", "show", task.id]);
    expect(shown.stdout).toMatch(new RegExp(`^diag.health_probe ${task.id}\n`));
  });

  it("TASK-09 follows its progress, for people and for scripts", async () => {
    const args = [
      "task",
      "run",
      node.name,
      "node.noop",
      "--param",
      // Long enough to be seen on the way, on a busy machine too.
      "hold_ms=4000",
      "--param",
      "echo=1",
      "--follow",
    ];
    const forPeople = await run(args);
    expect(forPeople).toMatchObject({ code: 0, stdout: "echo: 1\n" });
    expect(forPeople.stderr).toMatch(/^holding {2}\d+ % {2}\d+(\.\d)? m?s$/m);
    const { stdout, stderr } = await run([...args, "--json"]);
    const states = stdout
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line) as Task);
    expect(stderr).toBe("");
    expect(states.length).toBeGreaterThan(2);
    expect(states.map(({ revision }) => revision)).toEqual(
      states.map(({ revision }) => revision).toSorted((a, b) => a - b),
    );
    expect(states.at(-1)).toMatchObject({ status: "completed", result: { echo: "1" } });
  });

  const newest = async () => (await first.operator()(listTasks, { query: { limit: 1 } })).items[0];

  /** Starts a task that takes a minute, and waits until it runs. */
  async function longTask(more: string[] = []): Promise<{ started: Started; task: () => Promise<Task> }> {
    const earlier = await newest();
    const started = first.installation.start([
      "task",
      "run",
      node.name,
      "node.noop",
      "--param",
      "hold_ms=60000",
      ...more,
    ]);
    await until(async () => {
      const task = await newest();
      return task?.id !== earlier?.id && task?.phase === "holding";
    });
    return { started, task: async () => (await newest()) as Task };
  }

  it.for([[[]], [["--follow"]], [["--json"]]] as const)(
    "TASK-09 is cancelled on the node by Ctrl-C: %j",
    async ([more]) => {
      const { started, task } = await longTask([...more]);
      started.process.kill("SIGINT");
      const ended = await started.ended;
      expect(ended.code).toBe(130);
      const cancelled = await task();
      expect(cancelled).toMatchObject({ status: "cancelled", failure: { code: "task_cancelled" } });
      expect(cancelled.timings["holding"], "the node itself says so").toBeGreaterThan(0);
      if (more[0] === "--json") expect(JSON.parse(ended.stdout)).toMatchObject({ status: "cancelled" });
      else expect(ended.stderr).toContain(`Task ${cancelled.id} cancelled.`);
    },
  );

  it("TASK-05 is waited for through a crash of the server", async () => {
    const earlier = await newest();
    const started = first.installation.start([
      "task",
      "run",
      node.name,
      "node.noop",
      "--param",
      // So long it is looked for, on a busy machine too.
      "hold_ms=10000",
      "--json",
    ]);
    await until(async () => {
      const task = await newest();
      return task?.id !== earlier?.id && task?.phase === "holding";
    });
    process.kill(first.installation.upFile().children["api"]?.pid ?? 0, "SIGKILL");
    const { code, stdout } = await started.ended;
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({ status: "completed", generation: 1 });
  });

  it("TASK-09 is left to itself by a second Ctrl-C, when the node does not answer", async () => {
    const { started, task } = await longTask();
    const agent = first.installation.upFile().children["agent"]?.pid ?? 0;
    process.kill(agent, "SIGSTOP");
    try {
      // One Ctrl-C may arrive twice within a moment, and still counts as one.
      await until(() => started.process.exitCode !== null || !started.process.kill("SIGINT"));
      const { code, stderr } = await started.ended;
      expect(code).toBe(130);
      expect(stderr).toContain(`Task ${(await task()).id} keeps running.`);
    } finally {
      process.kill(agent, "SIGCONT");
    }
    await until(async () => (await task()).status === "cancelled");
  });

  it("TASK-09 does not wait with --no-wait, and is cancelled by its id", async () => {
    const args = ["task", "run", node.name, "node.noop", "--param", "hold_ms=60000", "--no-wait"];
    const given = await json<Task>(args);
    expect(given.status).toBe("queued");
    await json(["task", "cancel", given.id]);
    const params = { task_id: given.id };
    await until(async () => (await first.operator()(getTask, { params })).status === "cancelled");
    const again = await run(["task", "cancel", given.id]);
    expect(again).toMatchObject({ code: 0, stdout: `Task ${given.id} cancelled.\n` });
  });

  it("lists by node and status", async () => {
    const { items } = await json<{ items: Task[] }>([
      "task",
      "list",
      "--node",
      node.name,
      "--status",
      "completed",
    ]);
    expect(new Set(items.map(({ status }) => status))).toEqual(new Set(["completed"]));
    expect((await run(["task", "list", "--status", "expired"])).stdout).toBe("No task matches.\n");
    expect((await run(["task", "types"])).stdout).toContain("hold_ms (integer)");
  });

  it.for([
    [["nowhere", "node.noop"], "not_found", "Nodes: "],
    [["01a1e13c-bc3d-71c5-9b58-aada3c2346d4", "node.noop"], "not_found", "Nodes: "],
    [["NODE", "node.shell"], "task_type_unknown", "Choose one of the types"],
    [["NODE", "node.noop", "--param", "hold_ms=soon"], "task_params_invalid", "Correct the fields"],
    [["NODE", "node.noop", "--params", '{"colour":"red"}'], "task_params_invalid", "Correct the fields"],
    [["NODE", "allocation.deprovision_user", "--params", "{}"], "forbidden", "Use the endpoint"],
  ] as const)("TASK-01 refuses %j as %s, with a next step", async ([[wanted, ...rest], code, nextStep]) => {
    const args = ["task", "run", wanted === "NODE" ? node.name : wanted, ...rest];
    const refused = await failure(args);
    expect(refused).toMatchObject({ exit: 1, code, next_step: expect.stringContaining(nextStep) });
    const forPeople = await run(args);
    expect(forPeople).toMatchObject({ code: 1, stdout: "" });
    expect(forPeople.stderr).toContain(`code ${code}`);
  });

  it("TASK-01 reports a task that failed, with its code and next step", async () => {
    const args = ["task", "run", node.name, "diag.network_probe", "--params", '{"endpoints":["elsewhere"]}'];
    const { code, stdout, stderr } = await run([...args, "--json"]);
    expect(code).toBe(1);
    const task = JSON.parse(stdout) as Task;
    expect(task.status).toBe("failed");
    expect(errorOf({ stderr })).toMatchObject({
      code: task.failure?.code,
      next_step: task.failure?.next_step,
    });
  });
});
