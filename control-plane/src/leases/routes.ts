// Leases and their labels over HTTP.

import type { AnswerOf } from "@holdfast/contracts/endpoint";
import {
  createLease,
  explainLease,
  getLease,
  type HostNotChosen,
  type Lease,
  listLeaseLabels,
  listLeases,
  readLeaseLog,
  removeLeaseLabel,
  setLeaseLabel,
  startLeaseWork,
  terminateLease,
} from "@holdfast/contracts/endpoints/leases";
import { ApiError } from "@holdfast/contracts/errors";
import { leaseStateTitles } from "@holdfast/contracts/words/vm-titles";
import { uuidv7 } from "@holdfast/kit/uuid";
import type { ApiContext } from "../api/context.ts";
import { pageStart, toPage } from "../api/page.ts";
import { orgRoute } from "../api/route.ts";
import { auditActor } from "../audit/record.ts";
import { type Tx, withOrg } from "../database/connect.ts";
import { commandRoutes } from "./command-routes.ts";
import { explainWaiting } from "./explain.ts";
import {
  deleteLabel,
  type LeaseRow,
  selectImages,
  selectLabels,
  selectLease,
  selectLeases,
  selectPlacement,
  selectTimeline,
  toLease,
  upsertLabel,
} from "./queries.ts";
import { leaseReason } from "./reasons.ts";
import { requireImage, resolveRequest } from "./resolve.ts";
import { readSerialLog } from "./serial-log.ts";
import { type Applied, applyEvents, type Happened } from "./transitions/apply.ts";
import { insertLease } from "./transitions/create.ts";
import { statesEnded } from "./transitions/table.ts";

export function leaseRoutes(api: ApiContext): void {
  orgRoute(api, createLease, async ({ body, org, actor, tx, touched, afterCommit, correlationId }) => {
    const wanted = resolveRequest(body, await selectLabels(tx), await selectImages(tx, { lock: true }));
    const id = uuidv7();
    const { vmLeaseTtlSeconds, vmConnectDeadlineSeconds, vmDisconnectGraceSeconds } = api.leases.limits;
    const lease = {
      ...{ ...wanted, id, orgId: org.id, correlationId, waitSeconds: body.wait_seconds },
      ttlSeconds: body.ttl_seconds ?? vmLeaseTtlSeconds,
      connectSeconds: vmConnectDeadlineSeconds,
      graceSeconds: vmDisconnectGraceSeconds,
    };
    await insertLease(tx, lease, auditActor(actor, org.role));
    touched({ type: "lease", id }, { image_id: wanted.imageId, profile: wanted.profile, label: wanted.label });
    afterCommit(() => api.leases.changed(id, undefined));
    return toLease(await requireLease(tx, id));
  });

  orgRoute(api, listLeases, async ({ tx, query }) => {
    const { limit, cursor, status, live, host_id: hostId, label } = query;
    const rows = await selectLeases(tx, {
      ...{ before: pageStart(listLeases, cursor), limit },
      ...(status === undefined ? {} : { status }),
      ...(live === undefined ? {} : { live: live === "true" }),
      ...(hostId === undefined ? {} : { hostId }),
      ...(label === undefined ? {} : { label }),
    });
    return toPage(listLeases, rows, { limit, idOf: (row) => row.id, toItem: toLease });
  });

  orgRoute(
    api,
    getLease,
    async ({ tx, params }) => ({
      ...toLease(await requireLease(tx, params.lease_id)),
      timeline: await selectTimeline(tx, params.lease_id),
    }),
    {
      waitFirst: async ({ params, query, org, signal }) => {
        if (query.wait_seconds === 0) return;
        const row = await withOrg(api.app, org.id, (tx) => requireLease(tx, params.lease_id));
        const { revision = row.revision } = query;
        if (statesEnded.includes(row.status) || row.revision !== revision) return;
        await api.leases.awaiting.changed({ id: row.id, revision }, { waitMs: query.wait_seconds * 1000, signal });
      },
    },
  );

  orgRoute(api, explainLease, async ({ tx, params, org }) => {
    const row = await requireLease(tx, params.lease_id);
    const lease = toLease(row);
    const stored = row.host_id === null ? null : await selectPlacement(tx, row.id);
    if (stored) {
      const not_chosen = stored.not_chosen as HostNotChosen[];
      const { title } = leaseStateTitles[lease.status];
      const summary = `Placed on ${stored.chosen.name}. The lease is now: ${title.toLowerCase()}.`;
      return { lease, at: stored.at, chosen: stored.chosen, not_chosen, summary };
    }
    const at = new Date().toISOString();
    if (row.finished_at !== null) return { lease, at, chosen: null, not_chosen: [], summary: endedWords(lease) };
    const policy = { ...api.leases.policy(), staleAfterSeconds: api.nodes.staleAfterSeconds };
    return { lease, at, chosen: null, ...(await explainWaiting(tx, { orgId: org.id, leaseId: row.id }, policy)) };
  });

  /** By the call's query: what is waited for before the transaction is the response. */
  const logs = new WeakMap<object, AnswerOf<typeof readLeaseLog>>();
  orgRoute(api, readLeaseLog, async ({ query }) => logs.get(query) ?? never(), {
    waitFirst: async ({ params, query, org, actor, signal, correlationId }) => {
      const row = await withOrg(api.app, org.id, (tx) => requireLease(tx, params.lease_id));
      const wanted = { from: query.from, waitSeconds: query.wait_seconds, signal, correlationId };
      logs.set(query, await readSerialLog(api, row, { ...wanted, by: auditActor(actor, org.role) }));
    },
  });

  orgRoute(api, startLeaseWork, async ({ tx, params, body, org, actor, touched, afterCommit }) => {
    const row = await requireLease(tx, params.lease_id);
    const by = auditActor(actor, org.role);
    const [applied] = await applyEvents(tx, [eventFor(row, { event: "work_started", work: body.work })], by);
    if (applied?.outcome === "refused") {
      const { title } = leaseStateTitles[applied.from_status];
      throw new ApiError("lease_not_connected", {
        message: `The lease is not connected: ${title.toLowerCase()}.`,
        details: { status: applied.from_status },
      });
    }
    touched({ type: "lease", id: row.id }, { work: body.work });
    afterCommit(() => api.leases.changed(row.id, undefined));
    return toLease(await requireLease(tx, row.id));
  });

  commandRoutes(api);

  orgRoute(api, terminateLease, async ({ tx, params, org, actor, touched, afterCommit }) => {
    const row = await requireLease(tx, params.lease_id);
    const event = row.host_retired
      ? { event: "abandon" as const, reason: leaseReason("abandoned", row) }
      : { event: "terminate" as const, message: "Terminated by a person." };
    const [applied] = await applyEvents(tx, [eventFor(row, event)], auditActor(actor, org.role));
    touched({ type: "lease", id: row.id }, changeOf(applied));
    afterCommit(() => api.leases.changed(row.id, undefined));
    return toLease(await requireLease(tx, row.id));
  });

  orgRoute(api, listLeaseLabels, async ({ tx }) => ({ items: await selectLabels(tx) }));

  orgRoute(api, setLeaseLabel, async ({ tx, body, org, touched }) => {
    requireImage(body.image_id, await selectImages(tx, { lock: true }));
    await upsertLabel(tx, org.id, body);
    touched({ type: "lease_label", name: body.label }, body);
    return body;
  });

  orgRoute(api, removeLeaseLabel, async ({ tx, params, touched }) => {
    if (!(await deleteLabel(tx, params.label))) throw new ApiError("not_found", { message: "Label not found." });
    touched({ type: "lease_label", name: params.label });
    return undefined;
  });
}

function never(): never {
  throw new Error("nothing was read");
}

const eventFor = (row: LeaseRow, event: Pick<Happened, "event" | "work" | "reason" | "message">): Happened => ({
  leaseId: row.id,
  vmId: null,
  ...event,
});

const changeOf = (applied: Applied | undefined) =>
  applied ? { event: applied.event, from: applied.from_status, to: applied.status } : {};

const endedWords = ({ reason, status }: Lease) =>
  reason ? `${reason.message} ${reason.next_step}` : leaseStateTitles[status].meaning;

async function requireLease(tx: Tx, id: string): Promise<LeaseRow> {
  const row = await selectLease(tx, id);
  if (!row) throw new ApiError("not_found");
  return row;
}
