// VM hosts over HTTP.

import { cleanHost, getHost, listHosts, updateHost, type VmHost } from "@holdfast/contracts/endpoints/hosts";
import { ApiError } from "@holdfast/contracts/errors";
import type { ApiContext } from "../api/context.ts";
import { type OrgCall, orgRoute } from "../api/route.ts";
import { auditActor } from "../audit/record.ts";
import type { Tx } from "../database/connect.ts";
import { toHost } from "./describe-host.ts";
import { type HostRow, selectHosts } from "./hosts-view.ts";
import { selectImages, selectOnHosts } from "./queries.ts";

export function hostRoutes(api: ApiContext): void {
  const present = async (tx: Tx, rows: readonly HostRow[]): Promise<VmHost[]> => {
    const images = await selectImages(tx);
    const policy = { ...api.leases.policy(), staleAfterSeconds: api.nodes.staleAfterSeconds };
    return rows.map((row) => toHost(row, images, policy));
  };
  const one = async ({ tx, org }: Pick<OrgCall<typeof getHost>, "tx" | "org">, nodeId: string) => {
    const [row] = await selectHosts(tx, { orgId: org.id, nodeId });
    if (!row) throw new ApiError("not_found", { message: "VM host not found." });
    return row;
  };
  const shown = async (tx: Tx, row: HostRow): Promise<VmHost> => {
    const [host] = await present(tx, [row]);
    if (!host) throw new Error("a host was read and not presented");
    return host;
  };

  orgRoute(api, listHosts, async ({ tx, org }) => {
    return { items: await present(tx, await selectHosts(tx, { orgId: org.id })) };
  });

  orgRoute(api, getHost, async (call) => shown(call.tx, await one(call, call.params.host_id)));

  orgRoute(api, updateHost, async (call) => {
    const { tx, params, body, touched, afterCommit } = call;
    const row = await one(call, params.host_id);
    await tx`UPDATE vm_hosts SET enabled = ${body.enabled} WHERE node_id = ${row.node_id}`;
    touched({ type: "node", id: row.node_id, name: row.name }, body);
    // A host that takes leases again may take one that waits.
    afterCommit(() => api.leases.advance());
    return shown(tx, await one(call, params.host_id));
  });

  orgRoute(api, cleanHost, async (call) => {
    const { tx, params, body, org, actor, correlationId, touched, afterCommit } = call;
    const row = await one(call, params.host_id);
    // VMs are compared only where nothing is removed: one that is launched meanwhile would look like one without a lease.
    const leases = body.dry_run ? await selectOnHosts(tx, [row.node_id]) : undefined;
    const task = await api.tasks.enqueue(tx, {
      nodeId: row.node_id,
      type: "vm.inventory",
      params: { expected: leases?.map(({ vm_id }) => vm_id) ?? null, remove: !body.dry_run },
      by: auditActor(actor, org.role),
      correlationId,
    });
    touched({ type: "node", id: row.node_id, name: row.name }, { ...body, task_id: task.id });
    afterCommit(() => api.tasks.enqueued(task));
    return { task_id: task.id };
  });
}
