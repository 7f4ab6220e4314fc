// Records certificates in a header that did not come from an ingress in the audit of the platform, for the listeners of
// all processes.

import { uuidv7 } from "@holdfast/kit/uuid";
import { type Forgeries, type Forgery, watchForgeries } from "@holdfast/service/forgeries";
import type { Log } from "@holdfast/service/log";
import type { Sql } from "../database/connect.ts";
import { type AuditActor, recordAudit } from "./record.ts";

const anybody: AuditActor = { actor_type: "anonymous", actor_id: null, actor_name: "anonymous", role: "none" };

export type SeenForgery = Forgery & { listener: string; count: number };

/** `by`: the reporting process, if it is not this one. */
export async function auditForgery(
  system: Sql,
  log: Log,
  { listener, address, correlationId, count }: SeenForgery,
  by: { actor?: AuditActor; orgId?: string; target?: { id: string; name: string } } = {},
): Promise<void> {
  await recordAudit(system, log, {
    orgId: by.orgId ?? null,
    by: by.actor ?? anybody,
    action: "certificate_header.send",
    target: { type: "listener", id: by.target?.id ?? null, name: by.target?.name ?? listener },
    result: "denied",
    reason: "certificate_header_refused",
    correlationId: correlationId || uuidv7(),
    details: { listener, address, count },
  });
}

/** Of the api's own listeners. */
export function auditForgeries(system: Sql, log: Log): Forgeries & { settled(): Promise<void> } {
  const writing = new Set<Promise<void>>();
  const forgeries = watchForgeries((listener, forgery) => {
    const written: Promise<void> = auditForgery(system, log, { listener, ...forgery })
      .catch((error: unknown) =>
        log.error({ err: error, listener }, "could not record a forged certificate in the audit"),
      )
      .finally(() => writing.delete(written));
    writing.add(written);
  });
  return { ...forgeries, settled: async () => void (await Promise.all(writing)) };
}
