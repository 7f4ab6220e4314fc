// Log lines as they are shown, and who may see them. Pure.

import type { LogLine, LogProcess } from "@holdfast/contracts/endpoints/logs";
import { uuidForm } from "@holdfast/kit/uuid";

/** A line as its process kept it. */
export type KeptLine = {
  /** Milliseconds since 1970. */
  at: number;
  process: LogProcess;
  replica: string;
  content: Record<string, unknown>;
};

export function parseLine(text: string, from: Pick<KeptLine, "process" | "replica">): KeptLine | undefined {
  try {
    const content = JSON.parse(text) as Record<string, unknown>;
    const at = Date.parse(String(content["time"]));
    return Number.isFinite(at) ? { at, ...from, content } : undefined;
  } catch {
    return undefined;
  }
}

/** Fields whose ids belong to one organization, with where they are looked up (`owned.ts`). */
const ownedFields = [
  "node_id",
  "allocation_id",
  "session_id",
  "task_id",
  "incident_id",
  "lease_id",
  "vm_id",
  "agent_id",
  "execution_id",
  "request_id",
] as const;

/** The ids on a line that belong to some organization. */
export function ownedIdsOf({ content }: KeptLine): string[] {
  return ownedFields.flatMap((field) => {
    const id = content[field];
    return typeof id === "string" && (field === "request_id" || uuidForm.test(id)) ? [id] : [];
  });
}

/**
 * A correlation id proves nothing: whoever sends a request may choose one that another organization used. So a line belongs to an
 * organization if it is of a request in it, or names something of it and nothing else.
 */
export function belongsTo(line: KeptLine, orgId: string, owned: ReadonlySet<string>): boolean {
  const ids = ownedIdsOf(line);
  const org = line.content["org_id"];
  if (org !== undefined && org !== orgId) return false;
  return ids.every((id) => owned.has(id)) && (org === orgId || ids.length > 0);
}

const shownElsewhere: ReadonlySet<string> = new Set(["time", "level", "msg", "process", "correlation_id"]);

export function presentLine({ at, process, replica, content }: KeptLine): LogLine {
  const { level, msg, correlation_id } = content;
  return {
    ...{ at: new Date(at).toISOString(), process, replica },
    level: typeof level === "string" ? level : "info",
    message: typeof msg === "string" ? msg : "",
    correlation_id: typeof correlation_id === "string" ? correlation_id : null,
    fields: Object.fromEntries(Object.entries(content).filter(([name]) => !shownElsewhere.has(name))),
  };
}
