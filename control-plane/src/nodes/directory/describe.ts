// A node's row as the API shows it.

import type { Node, NodeDetail } from "@holdfast/contracts/endpoints/nodes";
import { uuidv7Time } from "@holdfast/kit/uuid";
import { attentionOf } from "../../drift/verdicts/attention.ts";
import { type CurrentVerdict, currentVerdict } from "../../drift/verdicts/current.ts";
import { agentStatusOf } from "../../drift/verdicts/layers.ts";
import { verdictIn } from "../../drift/verdicts/read.ts";
import { freshnessOf } from "../presence/freshness.ts";
import type { HealthRow } from "../presence/health.ts";
import type { CertificateFacts, ListedRow, NodeRow } from "./queries.ts";

type Moment = { now: Date; staleAfterSeconds: number };
type Rules = { staleAfterSeconds: number };

/** In a list: with the stored verdict. */
export function toListed(row: ListedRow, rules: Rules): Node {
  const online = connectionOf(row, { ...rules, now: row.read_at }) === "online";
  return toNode(row, currentVerdict(verdictIn(row), { online }), rules);
}

function toNode(row: NodeRow, verdict: CurrentVerdict, { staleAfterSeconds }: Rules): Node {
  const moment = { now: row.read_at, staleAfterSeconds };
  const facts = row.heartbeat?.facts;
  const connection = connectionOf(row, moment);
  const { causes, userState, layers, pending } = verdict;
  return {
    id: row.id,
    name: row.name,
    status: row.status,
    status_reason: row.status_reason,
    connection,
    heartbeat_at: row.heartbeat_at?.toISOString() ?? null,
    created_at: row.created_at.toISOString(),
    agent_version: facts?.agent_version ?? null,
    os: facts ? `${facts.os.flavour} ${facts.os.version}`.trim() : null,
    arch: facts?.arch ?? null,
    capabilities: facts?.capabilities ?? [],
    running_tasks: row.heartbeat?.running ?? 0,
    agent_status: agentStatusOf(causes, { reporting: connection === "online", heard: row.heartbeat_at !== null }),
    user_state: userState,
    layers,
    attention: attentionOf(causes, row.read_at.getTime()),
    cause_pending: pending,
  };
}

export function toNodeDetail(
  row: NodeRow,
  { health, verdict }: { health: HealthRow | undefined; verdict: CurrentVerdict },
  rules: Rules,
): NodeDetail {
  const { heartbeat } = row;
  const certificate = certificateOf(row);
  const due = heartbeat?.certificate;
  return {
    ...toNode(row, verdict, rules),
    facts: heartbeat?.facts ?? null,
    instance_id: row.instance_id,
    boot_id: row.boot_id,
    agent_started_at: heartbeat?.started_at ?? null,
    ...linkOf(row, rules),
    clock_skew_seconds: row.clock_skew_ms === null ? null : row.clock_skew_ms / 1000,
    unsent_results: heartbeat?.unsent_results ?? null,
    certificate: certificate
      ? {
          serial: certificate.serial,
          not_before: utc(certificate.not_before),
          not_after: utc(certificate.not_after),
          renewal_due_at: due?.serial === certificate.serial ? due.renewal_due_at : null,
          revoked_at: certificate.revoked_at && utc(certificate.revoked_at),
        }
      : null,
    recovery_token: row.recovery_token && {
      seq: row.recovery_token.seq,
      issued_at: utc(row.recovery_token.issued_at),
      expires_at: utc(row.recovery_token.expires_at),
    },
    profile: heartbeat?.profile ?? null,
    setup: heartbeat?.setup ?? null,
    ...{ address: row.address, provider: row.provider, network_side: row.network_side },
    health: health ? { observed_at: health.observed_at.toISOString(), host: health.health } : null,
  };
}

/** The certificate in the last heartbeat, if that is newer than the last issue; otherwise the last issued one. */
function certificateOf({ issued, in_use, heartbeat_at }: NodeRow): CertificateFacts | undefined {
  if (!issued) return undefined;
  const reportedSince = heartbeat_at !== null && heartbeat_at.getTime() > new Date(issued.issued_at).getTime();
  return reportedSince && in_use ? in_use : issued;
}

function connectionOf(
  { heartbeat_at, disconnected_at }: NodeRow,
  { now, staleAfterSeconds }: Moment,
): Node["connection"] {
  const since = (at: Date | null) => (at === null ? undefined : now.getTime() - at.getTime());
  const heard = { ageMs: since(heartbeat_at), disconnectedMs: since(disconnected_at) };
  const freshness = freshnessOf(heard, staleAfterSeconds);
  return freshness === "in_future" ? "stale" : freshness;
}

function linkOf(row: NodeRow, rules: Rules): Pick<NodeDetail, "link" | "link_since"> {
  const { stream_id, disconnected_at, read_at } = row;
  const connection = connectionOf(row, { ...rules, now: read_at });
  if (connection !== "online" || disconnected_at !== null) return { link: null, link_since: null };
  if (stream_id === null) return { link: "poll", link_since: null };
  return { link: "stream", link_since: uuidv7Time(stream_id).toISOString() };
}

function utc(text: string): string {
  return new Date(text).toISOString();
}
