// Jenkins over a test's database: a controller that really answers, VM hosts that exist in the database only, and the jobs of an api
// replica, one turn at a time. A VM's agent connects by what its host took as user data.

import type { JenkinsLabelPolicy } from "@holdfast/contracts/endpoints/jenkins";
import { uuidv7 } from "@holdfast/kit/uuid";
import type { BuildRow } from "../../control-plane/src/jenkins/builds/queries.ts";
import type { JenkinsClient } from "../../control-plane/src/jenkins/client/client.ts";
import { type Jenkins, openJenkins } from "../../control-plane/src/jenkins/open.ts";
import { pollControllers } from "../../control-plane/src/jenkins/poll.ts";
import type { LeaseRow } from "../../control-plane/src/leases/queries.ts";
import { openUserDataVault, takeUserData } from "../../control-plane/src/leases/user-data.ts";
import { openKeyring } from "../../control-plane/src/mechanisms/sealing/keyring.ts";
import { IMAGE, type LeaseLab, openLeaseLab, outcomeOf, reportedVm } from "../api/leases.ts";
import { quiet } from "../api/replica.ts";
import { connectAgent, type StandInAgent } from "./agent.ts";
import { type StandInController, startController } from "./controller.ts";

export type ServedController = StandInController & { id: string };

export type JenkinsLab = {
  leases: LeaseLab;
  jenkins: Jenkins;
  org: string;
  host: string;
  serve(limits?: Partial<Limits>): Promise<ServedController>;
  /** One turn of the job, now. */
  poll(
    controller: ServedController,
    options?: { connect?: Jenkins["connect"] },
  ): ReturnType<typeof pollControllers>;
  /** The host does its tasks. Agents of VMs that it launched connect, unless `agents` is false. */
  hostTurn(options?: { agents?: boolean }): Promise<void>;
  /** By lease. */
  agents: Map<string, StandInAgent>;
  /** User data that hosts have taken, by lease. */
  userData: Map<string, string>;
  builds(controller: ServedController): Promise<BuildRow[]>;
  leasesOf(controller: ServedController): Promise<LeaseRow[]>;
  problem(controller: ServedController): Promise<{ code: string; next_step: string } | null>;
  /** Moves the times of a row into the past. */
  pass(controller: ServedController, seconds: number): Promise<void>;
};

type Limits = {
  most: number;
  burst: number;
  cooldown: number;
  connect: number;
  labels: JenkinsLabelPolicy[];
  enabled: boolean;
};

export const LABEL = "jenkins-tiny";

export async function openJenkinsLab(): Promise<JenkinsLab> {
  const leases = await openLeaseLab();
  const { app, system, superuser } = leases;
  const keyring = await openKeyring(system, { current: { id: "test", key: Buffer.alloc(32, 7) } });
  const jenkins = await openJenkins(keyring, { jenkinsAllowPrivate: ["127.0.0.1"] });
  const vault = await openUserDataVault(keyring);
  const org = await leases.newOrg();
  const host = await leases.newHost(org);
  await superuser`
    INSERT INTO vm_labels (org_id, label, image_id, profile) VALUES (${org}, ${LABEL}, ${IMAGE.id}, 'tiny')`;
  const agents = new Map<string, StandInAgent>();
  const userData = new Map<string, string>();

  const leaseOf = async (vmId: string) =>
    (await superuser<{ id: string }[]>`SELECT id FROM vm_leases WHERE vm_id = ${vmId}`)[0]?.id ?? "";

  return {
    ...{ leases, jenkins, org, host, agents, userData },
    async serve({ most = 20, burst = 20, cooldown = 10, connect = 240, labels, enabled = true } = {}) {
      const controller = await startController();
      const id = uuidv7();
      const policies = labels ?? [{ jenkins_labels: ["linux"], lease_label: LABEL }];
      await superuser`
        INSERT INTO jenkins_controllers (id, org_id, name, url, user_name, sealed_token, labels, most_leases, burst,
          cooldown_seconds, connect_seconds, creator_name, enabled)
        VALUES (${id}, ${org}, ${`ci-${id.slice(-12)}`}, ${controller.url}, ${controller.user},
          ${jenkins.vault.seal({ id, url: controller.url }, controller.token)}, ${JSON.stringify(policies)}::text::json, ${most},
          ${burst}, ${cooldown}, ${connect}, 'test', ${enabled})`;
      return Object.assign(controller, { id });
    },
    async poll({ id }, { connect = jenkins.connect } = {}) {
      await superuser`UPDATE jenkins_controllers SET next_poll_at = CASE WHEN id = ${id} THEN now() ELSE 'infinity' END`;
      return pollControllers({
        ...{ app, system, jenkins: { ...jenkins, connect }, vault, pollSeconds: 5, log: quiet },
        limits: { ttlSeconds: 3600, connectSeconds: 240, graceSeconds: 60 },
        onLease: () => undefined,
        onController: () => undefined,
      });
    },
    async hostTurn({ agents: connects = true } = {}) {
      await leases.advance();
      const launched: string[] = [];
      const pending = await superuser<{ vm_id: string }[]>`
        SELECT vm_id FROM vm_leases WHERE host_id = ${host} AND status = 'provisioning'`;
      for (const { vm_id } of pending) {
        const text = await takeUserData(system, vault, { nodeId: host, vmId: vm_id });
        if (text !== undefined) userData.set(await leaseOf(vm_id), text);
      }
      await leases.respond(host, (task) => {
        if (task.task_type === "vm.launch") launched.push(task.params.vm_id);
        return outcomeOf(task);
      });
      await leases.advance();
      const living = await superuser<{ vm_id: string }[]>`
        SELECT vm_id FROM vm_leases WHERE host_id = ${host} AND status IN ('booting', 'connected', 'running')`;
      await leases.report(host, { vms: living.map(({ vm_id }) => reportedVm(vm_id, "connected")) });
      await leases.advance();
      for (const vmId of connects ? launched : []) {
        const leaseId = await leaseOf(vmId);
        agents.set(leaseId, await connectAgent(userData.get(leaseId) ?? ""));
      }
    },
    builds: ({ id }) => superuser<BuildRow[]>`
      SELECT b.*, b.queue_id::float8 AS queue_id FROM jenkins_builds b WHERE controller_id = ${id} ORDER BY id`,
    leasesOf: ({ id }) => superuser<LeaseRow[]>`
      SELECT l.* FROM vm_leases l JOIN jenkins_builds b ON b.lease_id = l.id WHERE b.controller_id = ${id} ORDER BY l.id`,
    async problem({ id }) {
      const [row] = await superuser<{ problem: { code: string; next_step: string } | null }[]>`
        SELECT problem FROM jenkins_controllers WHERE id = ${id}`;
      return row?.problem ?? null;
    },
    async pass({ id }, seconds) {
      const by = `${seconds} seconds`;
      await superuser`
        UPDATE jenkins_builds SET created_at = created_at - ${by}::interval, lost_at = lost_at - ${by}::interval,
          left_at = left_at - ${by}::interval, finished_at = finished_at - ${by}::interval WHERE controller_id = ${id}`;
      await superuser`
        UPDATE vm_leases SET booted_at = booted_at - ${by}::interval WHERE id IN (
          SELECT lease_id FROM jenkins_builds WHERE controller_id = ${id})`;
    },
  };
}

/** Calls `at` before and after each call of the client; a promise that never settles is a process that is gone. */
export function withCrash(
  connect: Jenkins["connect"],
  at: (moment: string) => Promise<void> | void,
): Jenkins["connect"] {
  return async (access) => {
    const client = await connect(access);
    const wrapped = Object.entries(client).map(([name, call]) => [
      name,
      async (...given: unknown[]) => {
        await at(`before ${name}`);
        const result = await (call as (...all: unknown[]) => unknown)(...given);
        await at(`after ${name}`);
        return result;
      },
    ]);
    return Object.fromEntries(wrapped) as JenkinsClient;
  };
}
