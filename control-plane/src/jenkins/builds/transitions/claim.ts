// Claims a queued item: from then on it gets a VM. The controller's row is locked, so that its limits hold also while two processes
// poll it at once; the unique index allows one claim of an item.

import type { JenkinsLabelPolicy } from "@holdfast/contracts/endpoints/jenkins";
import { uuidv7 } from "@holdfast/kit/uuid";
import type { Sql } from "../../../database/connect.ts";
import { literal } from "../../../mechanisms/transition-sql.ts";
import { nodeNameOf } from "../../client/node.ts";
import { INITIAL_STATE } from "./table.ts";

export type Claim = {
  controller: { id: string; orgId: string };
  item: { queueId: number; task: string; label: string };
  policy: JenkinsLabelPolicy;
};

const initial = literal(INITIAL_STATE);

/** False: the item has a build already, the controller was disabled or removed, or a limit is reached. */
export async function claimItem(system: Sql, { controller, item, policy }: Claim): Promise<boolean> {
  const [id, leaseId] = [uuidv7(), uuidv7()];
  return system.begin(async (tx) => {
    const [limits] = await tx<{ most_leases: number; burst: number; cooldown_seconds: number }[]>`
      SELECT most_leases, burst, cooldown_seconds FROM jenkins_controllers
      WHERE id = ${controller.id} AND enabled FOR NO KEY UPDATE`;
    if (!limits) return false;
    const rows = await tx`
      INSERT INTO jenkins_builds (id, org_id, controller_id, queue_id, attempt, task, label_expression, node_labels, lease_label,
        status, lease_id, node_name)
      SELECT ${id}, ${controller.orgId}, ${controller.id}, ${item.queueId},
        1 + (SELECT count(*) FROM jenkins_builds b WHERE b.controller_id = ${controller.id} AND b.queue_id = ${item.queueId}),
        ${item.task}, ${item.label}, ${policy.jenkins_labels}::text[], ${policy.lease_label}, ${initial}, ${leaseId},
        ${nodeNameOf(leaseId)}
      WHERE (SELECT count(*) FROM jenkins_builds b WHERE b.controller_id = ${controller.id} AND b.finished_at IS NULL)
          < ${limits.most_leases}
        AND (SELECT count(*) FROM jenkins_builds b WHERE b.controller_id = ${controller.id}
          AND b.created_at > now() - ${limits.cooldown_seconds} * interval '1 second') < ${limits.burst}
      ON CONFLICT DO NOTHING RETURNING id`;
    if (rows.length === 0) return false;
    await tx`
      INSERT INTO audit_events (id, org_id, actor_type, actor_id, actor_name, role, action, target_type, target_id, target_name,
        result, correlation_id, details)
      VALUES (${uuidv7()}, ${controller.orgId}, 'system', NULL, 'jenkins', 'system', 'jenkins_build.claim', 'jenkins_build', ${id},
        ${nodeNameOf(leaseId)}, 'allowed', ${leaseId},
        ${tx.json({ controller_id: controller.id, queue_id: item.queueId, task: item.task, lease_id: leaseId })})`;
    return true;
  });
}
