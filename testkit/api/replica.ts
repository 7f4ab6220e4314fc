// One replica's task engine over a test's database, without its listeners,
// and a node that calls the engine directly.

import type { Outcome } from "@holdfast/contracts/node/protocol";
import { uuidv7 } from "@holdfast/kit/uuid";
import { createLog } from "@holdfast/service/log";
import deprovision from "@holdfast/tasks/allocation.deprovision_user/contract";
import provision from "@holdfast/tasks/allocation.provision_user/contract";
import probe from "@holdfast/tasks/diag.health_probe/contract";
import noop from "@holdfast/tasks/node.noop/contract";
import type { AnyTaskType } from "@holdfast/tasks/type";
import type { Sql } from "../../control-plane/src/database/connect.ts";
import { openKeyring } from "../../control-plane/src/mechanisms/sealing/keyring.ts";
import { openSignals, type Signals } from "../../control-plane/src/mechanisms/signals.ts";
import { keepHealth } from "../../control-plane/src/nodes/presence/health.ts";
import { createTaskEngine, openTaskPools, type TaskEngine } from "../../control-plane/src/tasks/engine.ts";
import { openTaskVault } from "../../control-plane/src/tasks/secrets.ts";
import { openTaskSigner } from "../../control-plane/src/tasks/signing.ts";
import type { TestDatabase } from "../database/database.ts";
import { atEnd } from "../lifetime/at-end.ts";

const KEK = Buffer.alloc(32, 7);
export const quiet = createLog({ process: "test", level: "fatal" });

const types = new Map<string, AnyTaskType>([provision, deprovision, probe, noop].map((type) => [type.type, type]));

export type Replica = { engine: TaskEngine; signals: Signals };

export async function openReplica(database: TestDatabase, system: Sql): Promise<Replica> {
  const signals = await openSignals(system, quiet);
  const keyring = await openKeyring(system, { current: { id: "local-1", key: KEK }, previous: undefined });
  const signer = await openTaskSigner(system, keyring, { log: quiet });
  const pools = openTaskPools({ url: database.systemUrl, application: "test-replica" });
  const onTaken = keepHealth(system, quiet);
  const vault = await openTaskVault(keyring);
  const engine = createTaskEngine({ pools, signals, signer, vault, types, log: quiet, onTaken });
  atEnd(async () => {
    await engine.stop();
    await signals.stop();
    await Promise.all([pools.swift.end({ timeout: 1 }), pools.durable.end({ timeout: 1 })]);
  });
  return { engine, signals };
}

export type TestNode = { id: string; org_id: string; name: string };

/** A node as it is after its first heartbeat. */
export async function insertNode(
  superuser: Sql,
  orgId: string,
  options: { name: string; capabilities?: string[]; account?: string },
): Promise<TestNode> {
  const node = { id: uuidv7(), org_id: orgId, name: options.name };
  const facts = { capabilities: options.capabilities ?? ["os_users"], account: options.account ?? "root" };
  await superuser`
    INSERT INTO nodes (id, org_id, name, status) VALUES (${node.id}, ${orgId}, ${node.name}, 'active')`;
  await superuser`
    INSERT INTO node_presence (node_id, org_id, heartbeat_at, instance_id, boot_id, clock_skew_ms, heartbeat)
    VALUES (${node.id}, ${orgId}, now(), ${uuidv7()}, 'boot', 0, ${superuser.json({ facts })})`;
  return node;
}

/** Takes the tasks that the node is offered and reports a result for each, as its agent would. */
export async function answerTasks(
  { engine }: Replica,
  node: TestNode,
  outcomeOf: (task: { task_type: string; params: Record<string, unknown> }) => Outcome,
): Promise<string[]> {
  const poll = {
    instanceId: uuidv7(),
    room: 32,
    holding: [],
    waitMs: 30_000,
    signal: new AbortController().signal,
  };
  const { tasks } = await engine.wait(node.id, poll);
  await engine.results(
    node.id,
    tasks.map((task) => ({
      task_id: task.task_id,
      generation: task.generation,
      timings: {},
      outcome: outcomeOf(task as typeof task & { params: Record<string, unknown> }),
    })),
  );
  return tasks.map((task) => task.task_type);
}
