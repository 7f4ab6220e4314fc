// Two machines with one identity: found, quarantined, both learn why, and an operator keeps one of them.

import { copyFileSync } from "node:fs";
import { join } from "node:path";
import type { Explanation } from "@holdfast/contracts/endpoints/drift";
import { getNode } from "@holdfast/contracts/endpoints/nodes";
import type { Fault } from "../faults/fault.ts";
import type { Lab } from "../lab/lab.ts";
import type { RunningProgram } from "../lab/program.ts";
import { PATIENCE_SECONDS, until, within } from "../until.ts";
import type { Recovery } from "./recovery.ts";
import { copyState, joinAgain, startElsewhere } from "./steps.ts";
import type { RecoveryStory } from "./story.ts";
import { hoursPass } from "./time.ts";

type Clone = { fault: Fault; agent(): RunningProgram };

/** An agent on another host, with what `copied` returns. */
function cloneOf(lab: Lab, what: string, copied: () => { stateDir: string; env?: Record<string, string> }): Clone {
  let agent: RunningProgram | undefined;
  return {
    agent() {
      if (!agent) throw new Error("there is no clone yet");
      return agent;
    },
    fault: {
      what,
      async inject() {
        const { stateDir, env } = copied();
        agent = startElsewhere(lab, stateDir, env);
      },
      repair: async () => await agent?.stop("SIGKILL"),
    },
  };
}

export const coldClone: Recovery = {
  name: "clone-cold",
  title: "a disk image of the node is started on a second host",
  async run(story) {
    const { lab } = story;
    const clone = cloneOf(lab, "a copy of the disk runs elsewhere", () => ({ stateDir: copyState(lab, "cold") }));
    await isResolved(story, clone, ({ recommended, instances }) => {
      const original = instances.find(({ hostname }) => hostname === lab.node.name);
      if (recommended !== null && recommended !== original?.holder) {
        throw new Error(`the clone is recommended as the original: ${JSON.stringify(instances)}`);
      }
      return String(original?.holder);
    });
  },
};

export const warmClone: Recovery = {
  name: "clone-warm",
  title: "the running machine is copied: the same ids, behind the same address",
  async run(story) {
    const { lab } = story;
    const memory = join(lab.directory, "memory");
    const withMemory = (file: string) => ({
      NODE_OPTIONS: `--import=${new URL("./memory.mjs", import.meta.url).href}`,
      LAB_MEMORY: file,
    });
    const nat = sameAddress(lab);
    await nat.inject();
    await lab.node.agent().stop();
    lab.node.startAgent({ env: withMemory(memory) });
    await isConnected(story);
    const clone = cloneOf(lab, "a copy of the running machine runs elsewhere", () => {
      copyFileSync(memory, `${memory}.copy`);
      return { stateDir: copyState(lab, "warm"), env: withMemory(`${memory}.copy`) };
    });
    await isResolved(story, clone, ({ instances }) => {
      const [one, other] = instances;
      if (!one || !other || one.instance_id !== other.instance_id || one.boot_id !== other.boot_id) {
        throw new Error(`the ids of the two differ: ${JSON.stringify(instances)}`);
      }
      return String(one.holder);
    });
    await lab.node.agent().stop();
    const rules = await lab.router.run("nft", "list", "table", "ip", "nat");
    // The connections of both, at least.
    if (Number(/counter packets (\d+)/.exec(rules)?.[1]) < 2) throw new Error(`no address was changed: ${rules}`);
    await nat.repair();
    lab.node.startAgent();
    await isConnected(story);
  },
};

export const cloneBeforeRenewal: Recovery = {
  name: "clone-before-renewal",
  title: "a copy of the disk from before the last renewal of the certificate is started on a second host",
  async run(story) {
    const { lab } = story;
    const serial = async () => (await story.node()).certificate?.serial;
    const before = await serial();
    const stateDir = copyState(lab, "earlier");
    // It is renewed after half of its lifetime, a tenth earlier or later.
    hoursPass(lab, 15);
    await until("the certificate is renewed", PATIENCE_SECONDS, async () => (await serial()) !== before);
    const clone = cloneOf(lab, "a copy of the disk from before the renewal runs elsewhere", () => ({ stateDir }));
    await isResolved(story, clone, ({ recommended, instances }) => String(recommended ?? instances[0]?.holder));
  },
};

type Known = NonNullable<Explanation["clone"]>;

async function isResolved(story: RecoveryStory, clone: Clone, choose: (known: Known) => string): Promise<void> {
  const { lab } = story;
  await story.breaks(clone.fault);
  const { clone: known } = await story.isClassified("cloned_identity_detected");
  if (!known) throw new Error("the explanation does not name the two machines");
  await isQuarantined(story);
  await Promise.all([lab.node.agent(), clone.agent()].map((agent) => learns(agent, "node_quarantined")));
  const kept = choose(known);
  const token = await story.desk<{ token: string; api_url: string }>(
    ...["node", "resolve-clone", lab.node.name, "--keep", kept, "--yes"],
  );
  // What both of them had is worth nothing any more.
  await learns(clone.agent(), "identity_revoked");
  await story.repairs();
  await joinAgain(story, token);
  await story.desk("node", "reactivate", lab.node.name);
  await story.isGreen(["node.resolve_clone", "node.enroll"]);
}

/** The agent's own log says why. */
async function learns(agent: RunningProgram, reason: string): Promise<void> {
  await within(
    `${agent.name} learns ${reason}`,
    PATIENCE_SECONDS,
    agent.line((line) => line.reason === reason, 0),
  );
}

async function isQuarantined({ node }: RecoveryStory): Promise<void> {
  await until("the node is quarantined", PATIENCE_SECONDS, async () => (await node()).status === "quarantined");
}

async function isConnected({ lab }: RecoveryStory): Promise<void> {
  const started = Date.now();
  await until(`${lab.node.name} is online`, PATIENCE_SECONDS, async () => {
    const { connection, heartbeat_at } = await lab.control.operator(getNode, { params: { node_id: lab.node.id } });
    return connection === "online" && Date.parse(heartbeat_at ?? "") > started;
  });
}

/** The router presents all hosts behind it with one address. */
function sameAddress({ router, network }: Lab): Fault {
  const chain = `chain leaving { type nat hook postrouting priority 100; ip daddr ${network.control.address} counter masquerade; }`;
  return {
    what: "all nodes have the same address",
    inject: () => router.nft(`table ip nat {\n${chain}\n}\n`),
    repair: () => router.nft("table ip nat\ndelete table ip nat\n"),
  };
}
