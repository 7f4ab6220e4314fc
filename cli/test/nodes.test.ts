// From `holdfast up` to a result of this machine as its first node, and back: tasks, cancelling,
// users, and what every wrong input is told. Real processes, real mutual TLS, real users as root.

import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir, userInfo } from "node:os";
import { join } from "node:path";
import type { Allocation } from "@holdfast/contracts/endpoints/allocations";
import { createEnrollmentToken, type EnrollmentToken } from "@holdfast/contracts/endpoints/enrollment";
import type { Node } from "@holdfast/contracts/endpoints/nodes";
import type { Task } from "@holdfast/contracts/endpoints/tasks";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startTestApi } from "../../control-plane/test/support/api.ts";
import { openRoles } from "../../control-plane/test/support/database.ts";
import { lacks } from "../../scripts/facilities.mjs";
import {
  type Installation,
  type Outcome,
  openInstallation,
  type Ready,
  type Started,
  until,
} from "./support/holdfast.ts";

type MadeToken = EnrollmentToken & { token: string; api_url: string; join_command: string };
type Failure = { error: { code: string; message: string; next_step?: string; details?: Record<string, unknown> } };

let installation: Installation;
let up: Started;
let ready: Ready;
let node: Node;
let scratch: string;

beforeAll(async () => {
  scratch = mkdtempSync(join(tmpdir(), "holdfast-nodes-"));
  installation = openInstallation();
  up = installation.up();
  ready = await up.ready;
  await until(async () => {
    const { items } = await json<{ items: Node[] }>(["node", "list"]);
    if (items[0]?.connection === "online") node = items[0];
    return node !== undefined;
  });
}, 120_000);
afterAll(async () => {
  await installation.cleanUp();
  rmSync(scratch, { recursive: true, force: true });
});

const run = (args: string[], env?: Record<string, string>) => installation.run(args, env);

async function json<T>(args: string[]): Promise<T> {
  const { code, stdout, stderr } = await run([...args, "--json"]);
  if (code !== 0) throw new Error(`holdfast ${args.join(" ")} ended with ${code}:\n${stderr}`);
  return JSON.parse(stdout) as T;
}

/** What a script is told: exit code, and the error as JSON. */
async function failure(
  args: string[],
  env?: Record<string, string>,
): Promise<Failure["error"] & { exit: number | null }> {
  const { code, stdout, stderr } = await run([...args, "--json"], env);
  if (code === 0) throw new Error(`holdfast ${args.join(" ")} succeeded:\n${stdout}`);
  return { exit: code, ...(JSON.parse(stderr) as Failure).error };
}

describe("this machine", () => {
  it("OPS-01 is the first node of its own installation, active and online", async () => {
    const { items } = await json<{ items: Node[] }>(["node", "list"]);
    expect(items).toMatchObject([{ id: node.id, status: "active", connection: "online", attention: [] }]);
    const { agent, ...parts } = await json<Record<string, { ok: boolean }>>(["status"]);
    expect(agent).toMatchObject({ ok: true, node_id: node.id, url: expect.stringMatching(/^http:/) });
    expect(Object.keys(parts)).toEqual(["api", "gateway", "worker", "database"]);
    expect(installation.upFile()).toMatchObject({
      node_api_url: ready.node_api_url,
      agent: { node_id: node.id, node_name: node.name, state_dir: join(installation.dataDir, "agent") },
    });
  });

  it("AGENT-08 is shown with what its agent found", async () => {
    const { stdout } = await run(["node", "show", node.name]);
    expect(stdout).toContain(`${node.name}\n`);
    expect(stdout).toMatch(/connection\s+● online/);
    expect(stdout).toMatch(/certificate\s+until \d{4}-/);
    const listed = await run(["node", "list"]);
    expect(listed.stdout).toMatch(/^NAME\s+STATUS\s+CONNECTION/);
  });

  it("ID-01 stays the same node over a restart, and its agent comes back after a kill", async () => {
    const first = installation.upFile().children["agent"]?.pid ?? 0;
    process.kill(first, "SIGKILL");
    await until(() => installation.upFile().children["agent"]?.pid !== first);
    up.process.kill("SIGTERM");
    await up.ended;
    up = installation.up();
    ready = await up.ready;
    await until(async () => (await run(["task", "run", node.name, "node.noop", "--expires", "60"])).code === 0);
    const { items } = await json<{ items: Node[] }>(["node", "list"]);
    expect(items.map(({ id }) => id)).toEqual([node.id]);
  }, 120_000);

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
    const taken = join(scratch, "a-file");
    writeFileSync(taken, "");
    try {
      const started = other.up({ HOLDFAST_AGENT_STATE_DIR: taken });
      await started.ready;
      await until(() => started.printed().stderr.includes("This machine did not become a node"));
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
      "hold_ms=800",
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

  /** Starts a task that takes a minute, and waits until it runs. */
  async function longTask(more: string[] = []): Promise<{ started: Started; task: () => Promise<Task> }> {
    const earlier = await json<{ items: Task[] }>(["task", "list", "--limit", "1"]);
    const started = installation.start([
      "task",
      "run",
      node.name,
      "node.noop",
      "--param",
      "hold_ms=60000",
      ...more,
    ]);
    const newest = async () => (await json<{ items: Task[] }>(["task", "list", "--limit", "1"])).items[0] as Task;
    await until(async () => {
      const task = await newest();
      return task.id !== earlier.items[0]?.id && task.phase === "holding";
    });
    return { started, task: newest };
  }

  it.for([[[]], [["--follow"]], [["--json"]]] as const)(
    "TASK-07 is cancelled on the node by Ctrl-C: %j",
    async ([more]) => {
      const { started, task } = await longTask([...more]);
      started.process.kill("SIGINT");
      const ended = await started.ended;
      expect(ended.code).toBe(130);
      const cancelled = await task();
      expect(cancelled).toMatchObject({ status: "cancelled", failure: { code: "task_cancelled" } });
      expect(cancelled.timings["holding"], "the node itself says so").toBeGreaterThan(0);
      if (more[0] === "--json") expect(JSON.parse(ended.stdout)).toMatchObject({ status: "cancelled" });
      else expect(ended.stderr).toContain(`Task ${cancelled.id} is cancelled.`);
    },
  );

  it("TASK-07 is left to itself by a second Ctrl-C, when the node does not answer", async () => {
    const { started, task } = await longTask();
    const agent = installation.upFile().children["agent"]?.pid ?? 0;
    process.kill(agent, "SIGSTOP");
    try {
      // One Ctrl-C may arrive twice within a moment, and still counts as one.
      await until(() => started.process.exitCode !== null || !started.process.kill("SIGINT"));
      const { code, stderr } = await started.ended;
      expect(code).toBe(130);
      expect(stderr).toContain(`Task ${(await task()).id} goes on without this command.`);
    } finally {
      process.kill(agent, "SIGCONT");
    }
    await until(async () => (await task()).status === "cancelled");
  });

  it("TASK-07 does not wait with --no-wait, and is cancelled by its id", async () => {
    const args = ["task", "run", node.name, "node.noop", "--param", "hold_ms=60000", "--no-wait"];
    const given = await json<Task>(args);
    expect(given.status).toBe("queued");
    await json(["task", "cancel", given.id]);
    await until(async () => (await json<Task>(["task", "show", given.id])).status === "cancelled");
    const again = await run(["task", "cancel", given.id]);
    expect(again).toMatchObject({ code: 0, stdout: `Task ${given.id} is cancelled.\n` });
  });

  it("TASK-10 lists by node and status", async () => {
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
    [["nowhere", "node.noop"], "not_found", "There are: "],
    [["01a1e13c-bc3d-71c5-9b58-aada3c2346d4", "node.noop"], "not_found", "There are: "],
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
    expect((JSON.parse(stderr) as Failure).error).toMatchObject({
      code: task.failure?.code,
      next_step: task.failure?.next_step,
    });
  });
});

describe("holdfast allocation", () => {
  const user = `hf-test-${process.pid}`;
  const uidOf = (name: string) => {
    try {
      return Number(execFileSync("id", ["-u", name], { stdio: "pipe", encoding: "utf8" }));
    } catch {
      return undefined;
    }
  };
  afterAll(() => {
    // Only what a failed test has left; a uid of ours and a name of this very run.
    if ((uidOf(user) ?? 0) >= 70_000) execFileSync("userdel", ["--remove", "--force", user], { stdio: "ignore" });
  });

  it.skipIf(lacks("root"))("BM-01 makes a user with its keys, and removes both", async () => {
    const keyFile = join(scratch, "id_ed25519.pub");
    const key = `ssh-ed25519 ${Buffer.alloc(51, 1).toString("base64")} somebody@somewhere`;
    writeFileSync(keyFile, `# mine\n${key}\n`);
    const create = ["allocation", "create", "--node", node.name, "--user", user, "--ssh-key", keyFile];
    const made = await json<Allocation>(create);
    expect(made).toMatchObject({ status: "active", username: user, own_account: false, home: `/home/${user}` });
    expect(uidOf(user)).toBeGreaterThanOrEqual(70_000);
    expect(readFileSync(`${made.home}/.ssh/authorized_keys`, "utf8")).toContain(key);
    expect(await failure(create)).toMatchObject({
      code: "allocation_exists",
      details: { allocation: made.id, status: "active" },
    });
    const listed = await run(["allocation", "list", "--node", node.name, "--status", "active"]);
    expect(listed.stdout).toMatch(new RegExp(`${made.id}\\s+${user}\\s+${node.name}\\s+active`));
    const released = await run(["allocation", "release", made.id]);
    expect(released).toMatchObject({ code: 0 });
    expect(released.stderr).toContain(`Waiting for ${node.name} to remove ${user}.`);
    expect(released.stdout).toContain(`${user} on ${node.name} is removed.`);
    expect(uidOf(user)).toBeUndefined();
    expect((await run(["allocation", "show", made.id])).stdout).toContain("is removed.");
  });

  it.skipIf(lacks("root"))(
    "BM-01 refuses a user that Holdfast did not make, touches nothing, and can be given back",
    async () => {
      const refused = await failure(["allocation", "create", "--node", node.name, "--user", "daemon"]);
      expect(refused).toMatchObject({
        exit: 1,
        code: "user_not_ours",
        next_step: expect.stringContaining("another user name"),
      });
      const id = String(refused.details?.["allocation"]);
      expect(await json<Allocation>(["allocation", "release", id])).toMatchObject({ status: "released" });
      expect(uidOf("daemon")).toBeDefined();
    },
  );

  it.skipIf(process.getuid?.() === 0)("BM-01 without root offers the agent's own account only", async () => {
    const { username } = userInfo();
    const refused = await failure(["allocation", "create", "--node", node.name, "--user", "someone-else"]);
    expect(refused).toMatchObject({ code: "own_account_only", details: { account: username } });
    const made = await json<Allocation>(["allocation", "create", "--node", node.name, "--user", username]);
    expect(made).toMatchObject({ status: "active", own_account: true });
    expect(await json<Allocation>(["allocation", "release", made.id])).toMatchObject({ status: "released" });
  });

  it.for([
    [["--node", "nowhere", "--user", "anna"], 1, "not_found"],
    [["--node", "NODE", "--user", "Anna Bolika"], 1, "invalid_request"],
    [["--node", "NODE", "--user", "anna", "--project", "nowhere"], 1, "not_found"],
    [["--node", "NODE", "--user", "anna", "--ssh-key", "/nowhere/id.pub"], 2, "usage"],
    [["--node", "NODE", "--user", "anna", "--ssh-key", "/etc/passwd"], 1, "invalid_request"],
    [["--node", "NODE"], 2, "usage"],
  ] as const)("BM-03 refuses %j", async ([args, exit, code]) => {
    const filled = args.map((one) => (one === "NODE" ? node.name : one));
    expect(await failure(["allocation", "create", ...filled])).toMatchObject({ exit, code });
  });

  it("BM-03 does not send a private key to anybody", async () => {
    const keyFile = join(scratch, "id_ed25519");
    writeFileSync(keyFile, "-----BEGIN OPENSSH PRIVATE KEY-----\nnobody's business\n");
    const refused = await run([
      "allocation",
      "create",
      "--node",
      node.name,
      "--user",
      "anna",
      "--ssh-key",
      keyFile,
    ]);
    expect(refused.code).toBe(2);
    expect(refused.stderr).toContain("Give the .pub file beside it");
    expect(refused.stderr).not.toContain("nobody's business");
  });
});

describe("holdfast agent join", () => {
  const makeToken = (...more: string[]) => json<MadeToken>(["node", "token", "create", ...more]);
  let count = 0;
  const enroll = async (made: Pick<MadeToken, "token" | "api_url">, options: { stateDir?: string } = {}) => {
    count += 1;
    const stateDir = options.stateDir ?? join(scratch, `state-${count}`);
    const env = { HOLDFAST_AGENT_STATE_DIR: stateDir };
    return {
      stateDir,
      ...(await run(["agent", "join", "--token", made.token, "--api", made.api_url, "--json"], env)),
    };
  };
  const codeOf = ({ stderr }: Outcome) => (JSON.parse(stderr) as Failure).error.code;

  it("ID-01 prints the command to copy, and says who can use it", async () => {
    const { stdout } = await run(["node", "token", "create", "--expires", "5"]);
    expect(stdout).toMatch(/^\S*\s?.*agent join --token hfe_\S{43}\.\S{43} --api https:\/\/127\.0\.0\.1:\d+\n/);
    expect(stdout).toContain("It works once, until ");
    const listed = await run(["node", "token", "list"]);
    expect(listed.stdout).toMatch(/a new one\s+until \d{4}-/);
    expect(listed.stdout).not.toContain("hfe_");
  });

  it("ID-01 makes a node of the name given, once", async () => {
    const made = await makeToken("--name", "reef-2");
    const joined = await enroll(made);
    expect(joined.code).toBe(0);
    expect(JSON.parse(joined.stdout)).toMatchObject({ node_name: "reef-2", rekeyed: false });
    const again = await enroll(made);
    expect([again.code, codeOf(again)]).toEqual([1, "enrollment_token_used"]);
    const retired = await run(["node", "retire", "reef-2", "--yes"]);
    expect(retired).toMatchObject({ code: 0, stdout: "reef-2 is retired.\n" });
    expect(await failure(["node", "reactivate", "reef-2"])).toMatchObject({ code: "node_change_refused" });
  });

  it("ID-01 refuses a token that was revoked, or is somebody's invention", async () => {
    const revoked = await makeToken();
    await json(["node", "token", "revoke", revoked.id]);
    expect(codeOf(await enroll(revoked))).toBe("enrollment_token_unknown");
    const invented = { ...revoked, token: `hfe_${"x".repeat(43)}.${revoked.token.split(".")[1]}` };
    expect(codeOf(await enroll(invented))).toBe("enrollment_token_unknown");
  });

  it("ID-01 refuses a token that has expired", async () => {
    const api = await startTestApi();
    const { superuser } = openRoles(api.database);
    const made = await api.operator()(createEnrollmentToken, { body: {} });
    await superuser`UPDATE enrollment_tokens SET expires_at = now() - interval '1 second'`;
    const refused = await enroll(made);
    expect([refused.code, codeOf(refused)]).toEqual([1, "enrollment_token_expired"]);
  });

  it("ID-01 sends nothing to a server that shows another CA than the token names", async () => {
    const made = await makeToken();
    const wrong = { ...made, token: `${made.token.split(".")[0]}.${"A".repeat(43)}` };
    const refused = await enroll(wrong);
    expect([refused.code, codeOf(refused)]).toEqual([1, "ca_mismatch"]);
    expect((await enroll(made)).code, "the token was not used up").toBe(0);
  });

  it("ID-01 refuses clear text to another machine", async () => {
    const made = await makeToken();
    const refused = await enroll({ ...made, api_url: "http://holdfast.example.com:18442" });
    expect([refused.code, codeOf(refused)]).toEqual([2, "usage"]);
    expect(refused.stderr).toContain("clear text");
  });

  it.skipIf(lacks("root"))("AGENT-05 says that its state directory cannot be written to", async () => {
    const made = await makeToken();
    const readOnly = join(scratch, "read-only");
    mkdirSync(readOnly);
    execFileSync("mount", ["-t", "tmpfs", "-o", "ro", "tmpfs", readOnly]);
    try {
      const refused = await enroll(made, { stateDir: readOnly });
      expect([refused.code, codeOf(refused)]).toEqual([1, "state_dir_read_only"]);
      expect(refused.stderr).toContain(readOnly);
    } finally {
      execFileSync("umount", [readOnly]);
    }
  });

  it("ID-09 of a node without its key file takes the same node back in with a token for it", async () => {
    const made = await makeToken("--name", "reef-3");
    const joined = await enroll(made);
    const { node_id } = JSON.parse(joined.stdout) as { node_id: string };
    rmSync(join(joined.stateDir, "identity.pem"));
    const agent = await run(["agent", "diagnose", "--json"], { HOLDFAST_AGENT_STATE_DIR: joined.stateDir });
    expect(agent.code).toBe(1);
    expect(agent.stdout).toContain("identity_key_missing");
    const again = await enroll(await makeToken("--node", "reef-3"), { stateDir: joined.stateDir });
    expect(JSON.parse(again.stdout)).toMatchObject({ node_id, rekeyed: true });
    await json(["node", "retire", "reef-3", "--yes"]);
  });

  it("ID-17 asks before it ends a node's identity, where there is somebody to ask", async () => {
    const refused = await run(["node", "revoke", node.name]);
    expect(refused).toMatchObject({ code: 2, stdout: "" });
    expect(refused.stderr).toContain("--yes");
  });
});

describe("a node that was set aside", () => {
  it("ID-17 gets no tasks until it is reactivated, and says why", async () => {
    expect((await run(["node", "fence", node.name, "--reason", "smells of smoke"])).code).toBe(0);
    expect(await failure(["task", "run", node.name, "node.noop"])).toMatchObject({
      code: "node_not_active",
      details: { status: "quarantined" },
    });
    expect((await run(["node", "show", node.name])).stdout).toContain("quarantined (smells of smoke)");
    await json(["node", "reactivate", node.name]);
    expect((await run(["task", "run", node.name, "node.noop"])).code).toBe(0);
  });

  // The last of all: this machine's own identity ends here.
  it("ID-09 when revoked is told so, and comes back with a token made for it", async () => {
    await json(["node", "revoke", node.name, "--yes"]);
    await until(async () => {
      const { stdout } = await run(["agent", "diagnose", "--json"], {
        HOLDFAST_AGENT_STATE_DIR: join(installation.dataDir, "agent"),
      });
      return stdout.includes("identity_revoked");
    });
    expect(await failure(["task", "run", node.name, "node.noop"])).toMatchObject({ code: "node_not_active" });
    expect(await failure(["node", "reactivate", node.name])).toMatchObject({ code: "node_change_refused" });
    const { token, api_url } = await json<MadeToken>(["node", "token", "create", "--node", node.name]);
    const joined = await run(["agent", "join", "--token", token, "--api", api_url], {
      HOLDFAST_AGENT_STATE_DIR: join(installation.dataDir, "agent"),
    });
    expect(joined).toMatchObject({ code: 0 });
    await json(["node", "reactivate", node.name]);
    await until(async () => (await run(["task", "run", node.name, "node.noop"])).code === 0);
  });
});
