// The job that serves Jenkins controllers, with real PostgreSQL and a controller that really answers: the whole story of a build, its
// failures, and crashes between any two steps. VM hosts exist in the database only.

import { uuidv7 } from "@holdfast/kit/uuid";
import { beforeAll, describe, expect, it } from "vitest";
import { reportedVm } from "../../testkit/api/leases.ts";
import { settingsIn } from "../../testkit/jenkins/agent.ts";
import {
  type JenkinsLab,
  LABEL,
  openJenkinsLab,
  type ServedController,
  withCrash,
} from "../../testkit/jenkins/lab.ts";
import { markOf, nodeNameOf } from "../src/jenkins/client/node.ts";
import { takeUserData } from "../src/leases/user-data.ts";

let lab: JenkinsLab;
beforeAll(async () => {
  lab = await openJenkinsLab();
});

/** Turns of both sides until it holds. */
async function turnsUntil(
  controller: ServedController,
  holds: () => boolean | Promise<boolean>,
  options: { agents?: boolean } = {},
) {
  for (let turn = 0; turn < 12; turn += 1) {
    await lab.poll(controller);
    await lab.hostTurn(options);
    if (await holds()) return;
  }
  throw new Error(
    `not after 12 turns: ${JSON.stringify(await lab.builds(controller))}, ${JSON.stringify(await lab.problem(controller))}`,
  );
}

const hasEnded = (controller: ServedController) => async () =>
  (await lab.builds(controller)).every(({ status }) => status === "ended");

const statusOf = async (controller: ServedController) =>
  (await lab.builds(controller)).map(({ status }) => status);

async function buildingOn(
  controller: ServedController,
): Promise<{ agent: NonNullable<ReturnType<JenkinsLab["agents"]["get"]>>; build: string }> {
  await turnsUntil(controller, async () => (await statusOf(controller)).includes("building"));
  const open = (await lab.builds(controller)).find(({ status }) => status === "building");
  const agent = lab.agents.get(open?.lease_id ?? "");
  if (!agent) throw new Error("no agent is connected");
  return { agent, build: await agent.building() };
}

/** A minute passes with each turn. */
const untilEnded = (controller: ServedController, options: { agents?: boolean } = {}) =>
  turnsUntil(
    controller,
    async () => {
      await lab.pass(controller, 60);
      return hasEnded(controller)();
    },
    options,
  );

async function expectNothingLeft(controller: ServedController) {
  expect([...controller.nodes.keys()].filter((name) => name.startsWith("holdfast-"))).toEqual([]);
  expect((await lab.leasesOf(controller)).filter(({ finished_at }) => finished_at === null)).toEqual([]);
  expect(await lab.leases.superuser`SELECT FROM vm_lease_user_data`).toHaveLength(0);
}

describe("a queued build", () => {
  it("VM-06 gets a node and a VM, runs there, and leaves neither behind", async () => {
    const controller = await lab.serve();
    controller.addNode("static-1", "somebody's own");
    const item = controller.enqueue("compile", "linux && !windows");
    await lab.poll(controller);
    const [made] = await lab.builds(controller);
    expect(made).toMatchObject({
      status: "launching",
      queue_id: item.id,
      label_expression: "linux && !windows",
      attempt: 1,
    });
    expect(controller.nodes.get(made?.node_name ?? "")).toMatchObject({
      labels: ["linux"],
      mode: "EXCLUSIVE",
      executors: 1,
    });
    expect(await lab.leasesOf(controller)).toMatchObject([
      { label: LABEL, status: "requested", profile: "tiny", actor_name: "jenkins" },
    ]);

    const { agent, build } = await buildingOn(controller);
    expect(controller.builds).toMatchObject([{ item: { id: item.id }, node: made?.node_name, result: undefined }]);
    await lab.poll(controller);
    expect(controller.nodes.get(made?.node_name ?? "")?.heldOffline).toBe(true);
    const [running] = await lab.leasesOf(controller);
    expect(running).toMatchObject({ status: "running", work: controller.builds[0]?.url });

    agent.done(build);
    await expect.poll(() => controller.builds[0]?.result).toBe("SUCCESS");
    await turnsUntil(controller, hasEnded(controller));
    expect(await lab.builds(controller)).toMatchObject([
      { reason: { code: "build_ended" }, build_url: controller.builds[0]?.url },
    ]);
    await expectNothingLeft(controller);
    expect(controller.nodes.has("static-1")).toBe(true);
    const actions = await lab.leases.superuser`
      SELECT action FROM audit_events WHERE target_id = ${made?.id ?? ""} ORDER BY id`;
    expect(actions.map(({ action }) => action)).toEqual([
      "jenkins_build.claim",
      "jenkins_build.remove",
      "jenkins_build.end",
    ]);
  });

  it("SEC-03 VM-06 has its secret in no task, no answer and no log: sealed until its own host takes it, then erased", async () => {
    const controller = await lab.serve();
    controller.enqueue("compile", "linux");
    await lab.poll(controller);
    const [build] = await lab.builds(controller);
    const secret = controller.secretOf(build?.node_name ?? "");
    const { superuser, system } = lab.leases;
    await lab.leases.advance();
    const [lease] = await lab.leasesOf(controller);
    const vmId = lease?.vm_id ?? "";
    const [task] = await superuser<{ params: Record<string, unknown> }[]>`
      SELECT params FROM tasks WHERE type = 'vm.launch' AND params->>'vm_id' = ${vmId}`;
    expect(task?.params).toMatchObject({ user_data_sha256: expect.stringMatching(/^[0-9a-f]{64}$/) });
    const [{ dump } = { dump: "" }] = await superuser<{ dump: string }[]>`
      SELECT (SELECT json_agg(t)::text FROM tasks t) || (SELECT json_agg(u)::text FROM vm_lease_user_data u)
        || (SELECT json_agg(c)::text FROM jenkins_controllers c) || (SELECT json_agg(a)::text FROM audit_events a) AS dump`;
    expect(dump).toContain(vmId);
    expect(dump).not.toContain(secret);
    expect(dump).not.toContain(controller.token);
    const vault = { seal: () => Buffer.alloc(0), open: () => "opened" };
    expect(await takeUserData(system, vault, { nodeId: uuidv7(), vmId })).toBeUndefined();
    expect(await takeUserData(system, vault, { nodeId: lab.host, vmId: uuidv7() })).toBeUndefined();
    await lab.hostTurn({ agents: false });
    expect(settingsIn(lab.userData.get(lease?.id ?? "") ?? "")).toMatchObject({
      JENKINS_SECRET: secret,
      JENKINS_URL: controller.url,
    });
    expect(await takeUserData(system, vault, { nodeId: lab.host, vmId })).toBeUndefined();
    for (const item of [...controller.queue]) controller.cancel(item);
    await untilEnded(controller, { agents: false });
    await expectNothingLeft(controller);
  });

  it("VM-06 that was cancelled before its VM started takes node and lease with it", async () => {
    const controller = await lab.serve();
    const item = controller.enqueue("compile", "linux");
    await lab.poll(controller);
    controller.cancel(item);
    await untilEnded(controller, { agents: false });
    expect(await lab.builds(controller)).toMatchObject([{ reason: { code: "item_cancelled" } }]);
    await expectNothingLeft(controller);
  });

  it("VM-06 that ends between two polls is noticed, and its node takes no second build", async () => {
    const controller = await lab.serve({ most: 1 });
    controller.enqueue("first", "linux");
    await lab.poll(controller);
    await lab.hostTurn();
    const [agent] = [...lab.agents.values()].slice(-1);
    agent?.done((await agent.building()) ?? "");
    await expect.poll(() => controller.builds[0]?.result).toBe("SUCCESS");
    await turnsUntil(controller, async () => {
      await lab.pass(controller, 60);
      return hasEnded(controller)();
    });
    expect(await lab.builds(controller)).toMatchObject([
      { reason: { code: "item_left" }, build_url: controller.builds[0]?.url },
    ]);
    await expectNothingLeft(controller);
  });
});

describe("limits", () => {
  it("VM-06 hold for ten replicas at once: one VM for an item, no more than the cap and the burst", async () => {
    const controller = await lab.serve({ most: 3, burst: 2 });
    for (let n = 0; n < 6; n += 1) controller.enqueue(`job-${n}`, "linux");
    const together = () => Promise.all(Array.from({ length: 10 }, () => lab.poll(controller)));
    await together();
    expect(await lab.builds(controller)).toHaveLength(2);
    await together();
    expect(await lab.builds(controller)).toHaveLength(2);
    await lab.pass(controller, 11);
    await together();
    await lab.pass(controller, 11);
    await together();
    const builds = await lab.builds(controller);
    expect(new Set(builds.map(({ queue_id }) => queue_id)).size).toBe(builds.length);
    expect(builds).toHaveLength(3);
    expect([...controller.nodes.keys()].sort()).toEqual(builds.map(({ node_name }) => node_name).sort());
    const queue = await lab.leases.superuser<{ queue: { verdict: string }[] }[]>`
      SELECT queue FROM jenkins_controllers WHERE id = ${controller.id}`;
    expect(queue[0]?.queue.map(({ verdict }) => verdict)).toEqual([
      "has_vm",
      "has_vm",
      "has_vm",
      "cap",
      "cap",
      "cap",
    ]);
    for (const item of [...controller.queue]) controller.cancel(item);
    await untilEnded(controller, { agents: false });
    await expectNothingLeft(controller);
  });

  it("VM-06 of two replicas, one with an old list of nodes: no node counts as missing, and none is made online again", async () => {
    const controller = await lab.serve();
    controller.enqueue("compile", "linux");
    const old: typeof lab.jenkins.connect = async (access) => {
      const client = await lab.jenkins.connect(access);
      const nodes = await client.nodes();
      const queue = await client.queue();
      await lab.poll(controller);
      return { ...client, nodes: async () => nodes, queue: async () => queue };
    };
    await lab.poll(controller, { connect: old });
    expect(await statusOf(controller)).toEqual(["launching"]);
    await lab.hostTurn();
    const stale = await lab.jenkins.connect({
      url: controller.url,
      user: controller.user,
      token: controller.token,
    });
    const [{ node_name } = { node_name: "" }] = await lab.builds(controller);
    await stale.holdOffline(node_name);
    await stale.holdOffline(node_name);
    expect(controller.nodes.get(node_name)?.heldOffline).toBe(true);
    const agent = [...lab.agents.values()].at(-1);
    agent?.done((await agent.building()) ?? "");
    await untilEnded(controller);
    await expectNothingLeft(controller);
  });

  it("VM-06 of a disabled controller: nothing new, and what runs ends as usual", async () => {
    const controller = await lab.serve();
    controller.enqueue("compile", "linux");
    const { agent, build } = await buildingOn(controller);
    await lab.leases.superuser`UPDATE jenkins_controllers SET enabled = false WHERE id = ${controller.id}`;
    const second = controller.enqueue("second", "linux");
    agent.done(build);
    await expect.poll(() => controller.builds[0]?.result).toBe("SUCCESS");
    await turnsUntil(controller, hasEnded(controller));
    expect(await lab.builds(controller)).toHaveLength(1);
    expect(controller.queue).toEqual([second]);
    await expectNothingLeft(controller);
  });
});

describe("a failure", () => {
  it("VM-06 never connected: the VM is terminated, the node deleted, and another one is tried after the cooldown", async () => {
    const controller = await lab.serve({ connect: 120 });
    controller.enqueue("compile", "linux");
    await turnsUntil(controller, async () => (await lab.leasesOf(controller))[0]?.status === "connected", {
      agents: false,
    });
    await lab.poll(controller);
    expect(await statusOf(controller)).toEqual(["launching"]);
    await lab.pass(controller, 121);
    await turnsUntil(controller, async () => (await statusOf(controller))[0] === "ended", { agents: false });
    const [first, ...others] = await lab.builds(controller);
    expect(first?.reason?.code).toBe("never_connected");
    expect(others).toEqual([]);
    await expectNothingLeft(controller);
    await lab.pass(controller, 11);
    const { agent, build } = await buildingOn(controller);
    expect((await lab.builds(controller)).map(({ attempt }) => attempt)).toEqual([1, 2]);
    agent.done(build);
    await expect.poll(() => controller.builds[0]?.result).toBe("SUCCESS");
    await turnsUntil(controller, hasEnded(controller));
    await expectNothingLeft(controller);
  });

  it("VM-06 disconnected: a short absence changes nothing, a long one ends VM and node", async () => {
    const controller = await lab.serve();
    const item = controller.enqueue("compile", "linux");
    await lab.poll(controller);
    // The agent connects while its item is out of reach, as for a build that is held back.
    controller.queue = [];
    await lab.hostTurn();
    controller.queue = [item];
    await lab.poll(controller);
    expect(await statusOf(controller)).toEqual(["connected"]);
    const [{ lease_id } = { lease_id: "" }] = await lab.builds(controller);
    await lab.agents.get(lease_id)?.cut();
    await lab.poll(controller);
    await lab.pass(controller, 30);
    await lab.poll(controller);
    expect(await lab.builds(controller)).toMatchObject([{ status: "connected", lost_at: expect.any(Date) }]);
    await lab.pass(controller, 31);
    await turnsUntil(controller, async () => (await statusOf(controller))[0] === "ended");
    expect((await lab.builds(controller))[0]?.reason?.code).toBe("disconnected");
    controller.cancel(item);
    await turnsUntil(controller, hasEnded(controller));
    await expectNothingLeft(controller);
  });

  it("VM-06 node without VM: nodes with our mark and no build are deleted, all others stay", async () => {
    const controller = await lab.serve();
    const [own, foreign] = [uuidv7(), uuidv7()];
    controller.addNode(nodeNameOf(own), `VM of lease ${own} ${markOf(controller.id, own)}`);
    controller.addNode(nodeNameOf(foreign), `VM of lease ${foreign} ${markOf(uuidv7(), foreign)}`);
    controller.addNode("holdfast-by-hand", "made by hand");
    controller.addNode("renamed", `copied ${markOf(controller.id, own)}`);
    await lab.poll(controller);
    expect([...controller.nodes.keys()].sort()).toEqual(
      ["holdfast-by-hand", nodeNameOf(foreign), "renamed"].sort(),
    );
  });

  it("VM-06 VM without node: a node that was deleted by hand, or a lease that ended, ends the other side", async () => {
    const controller = await lab.serve();
    controller.enqueue("compile", "linux");
    await turnsUntil(controller, async () => (await lab.leasesOf(controller))[0]?.status === "connected", {
      agents: false,
    });
    const [build] = await lab.builds(controller);
    controller.nodes.delete(build?.node_name ?? "");
    await turnsUntil(controller, async () => (await statusOf(controller))[0] === "ended", { agents: false });
    expect((await lab.builds(controller))[0]?.reason?.code).toBe("node_missing");
    await lab.pass(controller, 11);
    await turnsUntil(controller, async () => (await lab.leasesOf(controller))[1]?.status === "connected", {
      agents: false,
    });
    await lab.leases
      .superuser`UPDATE vm_leases SET expires_at = now() WHERE id = ${(await lab.leasesOf(controller))[1]?.id ?? ""}`;
    await turnsUntil(controller, async () => (await statusOf(controller))[1] === "ended", { agents: false });
    expect((await lab.builds(controller))[1]?.reason?.code).toBe("lease_ended");
    await expectNothingLeft(controller);
  });

  it("VM-06 VM without lease: it is removed, and the build beside it goes on", async () => {
    const controller = await lab.serve();
    controller.enqueue("compile", "linux");
    const { agent, build } = await buildingOn(controller);
    const [lease] = await lab.leasesOf(controller);
    const stray = uuidv7();
    await lab.leases.report(lab.host, {
      vms: [reportedVm(lease?.vm_id ?? null, "connected"), reportedVm(stray, "connected")],
    });
    await lab.leases.advance();
    const [order] = await lab.leases.superuser`
      SELECT type FROM tasks WHERE type = 'vm.terminate' AND params->>'vm_id' = ${stray}`;
    expect(order).toBeDefined();
    await lab.poll(controller);
    expect(await statusOf(controller)).toEqual(["building"]);
    agent.done(build);
    await expect.poll(() => controller.builds[0]?.result).toBe("SUCCESS");
    await turnsUntil(controller, hasEnded(controller));
    await expectNothingLeft(controller);
  });

  it("VM-06 of the controller: restarted, slow, refusing, it leaves builds as they are and says what to do", async () => {
    const controller = await lab.serve();
    controller.enqueue("compile", "linux");
    const { agent, build } = await buildingOn(controller);
    const cases = [
      [{ status: 401 }, "jenkins_unauthorized", /API token/],
      [{ status: 403 }, "jenkins_forbidden", /Agent\/Create/],
      [{ status: 429, headers: { "retry-after": "7" } }, "jenkins_throttled", /later/],
      [{ status: 503 }, "jenkins_server_error", /log/],
      [{ status: 200, body: "<html>" }, "jenkins_unexpected", /api\/json/],
    ] as const;
    for (const [answer, code, step] of cases) {
      controller.instead = () => answer;
      await lab.poll(controller);
      expect(await lab.problem(controller)).toMatchObject({ code, next_step: expect.stringMatching(step) });
      expect(await statusOf(controller)).toEqual(["building"]);
    }
    controller.instead = undefined;
    await controller.stop();
    await lab.poll(controller);
    expect((await lab.problem(controller))?.code).toBe("jenkins_unreachable");
    await controller.start();
    // Its agents lose their connections with it, and this build its agent.
    expect(() => agent.done(build)).not.toThrow();
    controller.queue = [];
    await turnsUntil(controller, hasEnded(controller), { agents: false });
    expect(await lab.problem(controller)).toBeNull();
    await expectNothingLeft(controller);
  });
});

describe("a crash", () => {
  /** `crash` resolves when the process that polls is gone; another one follows it. */
  async function story(
    options: Parameters<JenkinsLab["poll"]>[1],
    crash: Promise<void> = new Promise(() => undefined),
  ): Promise<ServedController> {
    let isGone = false;
    const gone = crash.then(() => {
      isGone = true;
    });
    const controller = await lab.serve({ cooldown: 1 });
    controller.addNode("static-1");
    controller.enqueue("compile", "linux");
    for (let turn = 0; turn < 10; turn += 1) {
      const polled = lab.poll(controller, options);
      await (isGone ? polled : Promise.race([polled, gone]));
      await lab.hostTurn();
      const agent = lab.agents.get((await lab.builds(controller)).at(-1)?.lease_id ?? "");
      const id = agent?.builds.at(-1);
      if (agent && id && controller.builds.at(-1)?.result === undefined) {
        agent.done(id);
        await expect.poll(() => controller.builds.at(-1)?.result).toBe("SUCCESS");
      }
      await lab.pass(controller, 40);
      if (controller.builds.length > 0 && (await hasEnded(controller)())) break;
    }
    return controller;
  }

  it("VM-06 between any two steps, on either side, neither leaks a node nor a VM nor builds twice", async () => {
    const moments: string[] = [];
    await story({ connect: withCrash(lab.jenkins.connect, (moment) => void moments.push(moment)) });
    const distinct = [...new Set(moments)];
    expect(distinct).toEqual(
      expect.arrayContaining(["before createNode", "after createNode", "after agentSecret", "after deleteNode"]),
    );
    for (const moment of distinct) {
      const crashed = Promise.withResolvers<void>();
      let reached = false;
      const connect = withCrash(lab.jenkins.connect, (entered) => {
        if (reached || entered !== moment) return;
        reached = true;
        crashed.resolve();
        return new Promise<never>(() => undefined);
      });
      const controller = await story({ connect }, crashed.promise);
      expect(reached, moment).toBe(true);
      expect(await statusOf(controller), moment).toEqual(["ended"]);
      expect(
        controller.builds.map(({ result }) => result),
        moment,
      ).toEqual(["SUCCESS"]);
      await expectNothingLeft(controller);
      expect(controller.nodes.has("static-1"), moment).toBe(true);
    }
  });

  it("VM-06 of the controller between the claim and the node: crumbs and sessions are new, and nothing is made twice", async () => {
    const controller = await lab.serve();
    controller.enqueue("compile", "linux");
    const withCrumb: typeof lab.jenkins.connect = async (access) => {
      const client = await lab.jenkins.connect(access);
      await client.checkCrumb();
      return client;
    };
    const restarting = withCrash(withCrumb, async (moment) => {
      if (moment === "before createNode") await controller.restart();
    });
    await lab.poll(controller, { connect: restarting });
    expect(await lab.problem(controller)).toBeNull();
    expect(await statusOf(controller)).toEqual(["launching"]);
    await lab.poll(controller);
    expect(await lab.builds(controller)).toHaveLength(1);
    expect([...controller.nodes.keys()]).toHaveLength(1);
    for (const item of [...controller.queue]) controller.cancel(item);
    await untilEnded(controller, { agents: false });
    await expectNothingLeft(controller);
  });
});
