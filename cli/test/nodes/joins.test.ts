// Users on a node, machines that become nodes and cease to be ones, and what every wrong input is told.
// Real users and mounts as root; whatever is made is removed again.

import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { chownSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { userInfo } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Allocation } from "@holdfast/contracts/endpoints/allocations";
import { createEnrollmentToken, type EnrollmentToken } from "@holdfast/contracts/endpoints/enrollment";
import type { Node } from "@holdfast/contracts/endpoints/nodes";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { lacks } from "../../../scripts/facilities.mjs";
import { startTestApi } from "../../../testkit/api/api.ts";
import { openRoles } from "../../../testkit/database/database.ts";
import { type Outcome, until } from "../../../testkit/processes/holdfast.ts";
import { errorOf, type FirstNode, openFirstNode } from "../support/first-node.ts";

type MadeToken = EnrollmentToken & { token: string; api_url: string; join_command: string };

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
    const keyFile = join(first.scratch, "id_ed25519.pub");
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
    expect(listed.stdout).toMatch(new RegExp(`${made.id}\\s+${user}\\s+${node.name}\\s+ready`));
    const released = await run(["allocation", "release", `${user}@${node.name}`]);
    expect(released).toMatchObject({ code: 0 });
    expect(released.stderr).toContain(`Waiting for ${node.name} to remove ${user}.`);
    const removed = `User ${user} was removed from ${node.name}, with its home directory.`;
    expect(released.stdout).toContain(removed);
    expect(uidOf(user)).toBeUndefined();
    expect((await run(["allocation", "show", made.id])).stdout).toContain(removed);
  });

  it.skipIf(lacks("root"))("BM-01 repairs a user that was deleted on the node, without its home", async () => {
    const made = await json<Allocation>(["allocation", "create", "--node", node.name, "--user", user]);
    const target = `${user}@${node.name}`;
    const uid = uidOf(user);
    const complete = await run(["allocation", "repair", target]);
    expect(complete).toMatchObject({ code: 0 });
    expect(complete.stdout).toContain(`Nothing to repair for ${user} on ${node.name}. Checked: account`);
    writeFileSync(`${made.home}/thesis`, "twelve years of work");
    execFileSync("userdel", [user], { stdio: "ignore" });
    const repaired = await run(["allocation", "repair", target]);
    expect(repaired).toMatchObject({ code: 0 });
    expect(repaired.stdout).toContain(`Restored: group ${user}, account ${user} (uid ${uid}).`);
    expect(repaired.stdout).toContain(`Home ${made.home} was not changed.`);
    expect(uidOf(user)).toBe(uid);
    expect(readFileSync(`${made.home}/thesis`, "utf8")).toBe("twelve years of work");
    // Somebody else got the name meanwhile.
    execFileSync("userdel", [user], { stdio: "ignore" });
    execFileSync("useradd", ["--no-create-home", user], { stdio: "ignore" });
    try {
      const foreign = uidOf(user);
      expect(await failure(["allocation", "repair", made.id])).toMatchObject({ exit: 1, code: "user_not_ours" });
      expect(uidOf(user)).toBe(foreign);
    } finally {
      execFileSync("userdel", [user], { stdio: "ignore" });
    }
    const asked = await run(["allocation", "repair", target, "--no-wait"]);
    expect(asked.stdout).toContain("Repair requested.");
    await until(() => uidOf(user) === uid);
    await json(["allocation", "release", made.id]);
    expect(await failure(["allocation", "repair", made.id])).toMatchObject({ code: "allocation_not_active" });
  });

  it.skipIf(lacks("root"))(
    "BM-01 refuses a user that Holdfast did not create, changes nothing, and can be released",
    async () => {
      const refused = await failure(["allocation", "create", "--node", node.name, "--user", "daemon"]);
      expect(refused).toMatchObject({
        exit: 1,
        code: "user_not_ours",
        next_step: expect.stringContaining("another user name"),
      });
      const id = String(refused.details?.["allocation"]);
      const released = await run(["allocation", "release", id]);
      expect(released).toMatchObject({ code: 0 });
      expect(released.stdout).toContain(
        `Allocation released. The user daemon on ${node.name} was left alone, because Holdfast did not create it.`,
      );
      expect(released.stdout).not.toContain("removed");
      expect(uidOf("daemon")).toBeDefined();
    },
  );

  it.skipIf(lacks("openCheckout"))("BM-01 without root offers the agent's own account only", async () => {
    const plain = await startPlainAgent();
    try {
      const create = ["allocation", "create", "--node", "plain", "--user"];
      const refused = await failure([...create, "someone-else"]);
      expect(refused).toMatchObject({ code: "own_account_only", details: { account: plain.account } });
      const made = await json<Allocation>([...create, plain.account]);
      expect(made).toMatchObject({ status: "active", own_account: true });
      expect((await run(["allocation", "release", made.id])).stdout).toContain(
        `${plain.account} is the agent's own account on plain and was not changed.`,
      );
    } finally {
      await plain.stop();
    }
  });

  /** An agent of a user without root: ours, or `nobody` when we are root. */
  async function startPlainAgent() {
    const ours = process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : {};
    const stateDir = mkdtempSync("/tmp/holdfast-plain-");
    if (ours.uid) chownSync(stateDir, ours.uid, ours.gid);
    const command = fileURLToPath(new URL("../../bin/holdfast.mjs", import.meta.url));
    const env = { HOLDFAST_AGENT_STATE_DIR: stateDir, HOLDFAST_AGENT_PORT: "0", HOME: stateDir };
    const start = (...args: string[]) =>
      spawn(process.execPath, [command, "agent", ...args], { ...ours, env, cwd: "/", stdio: "ignore" });
    const { token, api_url } = await json<MadeToken>(["node", "token", "create", "--name", "plain"]);
    const [joined] = await once(start("join", "--token", token, "--api", api_url), "close");
    expect(joined, "joined").toBe(0);
    const agent = start("run");
    await until(async () => {
      const { items } = await json<{ items: Node[] }>(["node", "list"]);
      return items.some(({ name, connection }) => name === "plain" && connection === "online");
    });
    return {
      account: ours.uid ? "nobody" : userInfo().username,
      async stop() {
        agent.kill();
        await once(agent, "close");
        await json(["node", "retire", "plain", "--yes"]);
        rmSync(stateDir, { recursive: true });
      },
    };
  }

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
    const keyFile = join(first.scratch, "id_ed25519");
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
    expect(refused.stderr).toContain("Give the matching .pub file");
    expect(refused.stderr).not.toContain("nobody's business");
  });
});

describe("holdfast agent join", () => {
  const makeToken = (...more: string[]) => json<MadeToken>(["node", "token", "create", ...more]);
  let count = 0;
  const enroll = async (made: Pick<MadeToken, "token" | "api_url">, options: { stateDir?: string } = {}) => {
    count += 1;
    const stateDir = options.stateDir ?? join(first.scratch, `state-${count}`);
    const env = { HOLDFAST_AGENT_STATE_DIR: stateDir };
    return {
      stateDir,
      ...(await run(["agent", "join", "--token", made.token, "--api", made.api_url, "--json"], env)),
    };
  };
  const codeOf = ({ stderr }: Outcome) => errorOf({ stderr }).code;

  it("ID-01 prints the command to copy, and says who can use it", async () => {
    const { stdout } = await run(["node", "token", "create", "--expires", "5"]);
    const [line, explained, checkout] = stdout.split("\n");
    expect(line).toMatch(
      /sha256sum -c .*printf '%s\\n' hfe_\S{43}\.\S{43} \| sh \S+ --api https:\/\/127\.0\.0\.1:\d+ --token -\)$/,
    );
    expect(explained).toContain("Run this as root on the new machine");
    expect(checkout).toMatch(/agent join --token hfe_\S{43}\.\S{43} --api https:\/\/127\.0\.0\.1:\d+$/);
    expect(stdout).toContain("It works once and expires ");
    const listed = await run(["node", "token", "list"]);
    expect(listed.stdout).toMatch(/new node\s+valid until \d{4}-/);
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
    expect(retired).toMatchObject({ code: 0, stdout: expect.stringMatching(/^reef-2 is retired: /) });
    expect(await failure(["node", "reactivate", "reef-2"])).toMatchObject({ code: "node_change_refused" });
  });

  it("ID-01 refuses a token that was revoked, or is somebody's invention", async () => {
    const revoked = await makeToken();
    await json(["node", "token", "revoke", revoked.id]);
    expect(codeOf(await enroll(revoked))).toBe("enrollment_token_revoked");
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
    const readOnly = join(first.scratch, "read-only");
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

  it("ID-09 asks before it ends a node's identity, where there is somebody to ask", async () => {
    const refused = await run(["node", "revoke", node.name]);
    expect(refused).toMatchObject({ code: 2, stdout: "" });
    expect(refused.stderr).toContain("--yes");
  });
});

describe("a quarantined node", () => {
  it("ID-09 gets no tasks until it is reactivated, and says why", async () => {
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
        HOLDFAST_AGENT_STATE_DIR: join(first.installation.dataDir, "agent"),
      });
      return stdout.includes("identity_revoked");
    });
    expect(await failure(["task", "run", node.name, "node.noop"])).toMatchObject({ code: "node_not_active" });
    expect(await failure(["node", "reactivate", node.name])).toMatchObject({ code: "node_change_refused" });
    const { token, api_url } = await json<MadeToken>(["node", "token", "create", "--node", node.name]);
    const joined = await run(["agent", "join", "--token", token, "--api", api_url], {
      HOLDFAST_AGENT_STATE_DIR: join(first.installation.dataDir, "agent"),
    });
    expect(joined).toMatchObject({ code: 0 });
    await json(["node", "reactivate", node.name]);
    // It may wait a minute before it looks again.
    await until(async () => (await run(["task", "run", node.name, "node.noop"])).code === 0);
  });
});
