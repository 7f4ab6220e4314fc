// Many nodes at once, straight into the database: as they are after their heartbeats, in racks of 32 with a block of
// addresses each. What is not ordinary about one is said by its number. All of them are classified.

import type { Sql } from "../../control-plane/src/database/connect.ts";
import { relateIncidents } from "../../control-plane/src/drift/common-cause/relate.ts";
import { type NewObservation, recordObservations } from "../../control-plane/src/drift/evidence/write.ts";
import { defaultCommonCausePolicy, defaultPolicy } from "../../control-plane/src/drift/policy.ts";
import { findUnnoticed, noticeStandings } from "../../control-plane/src/drift/verdicts/find-unnoticed.ts";
import { classifyWhatIsDue } from "./evidence.ts";

export type Unusual = {
  /** Silent since so many seconds. */
  silentSeconds?: number;
  status?: "enrolling" | "draining" | "quarantined";
  version?: string;
  finding?: string;
  clockSkewMs?: number;
  capabilities?: string[];
};

export const RACK = 32;

/** As `holdfast sim remove` leaves them. */
export async function retireFleet(superuser: Sql, orgId: string): Promise<void> {
  await superuser`
    UPDATE nodes SET status = 'retired', revoked_at = now() WHERE org_id = ${orgId} AND starts_with(name, 'sim-')`;
}

export async function seedFleet(
  superuser: Sql,
  orgId: string,
  count: number,
  unusual: (number: number) => Unusual = () => ({}),
): Promise<void> {
  const numbers = Array.from({ length: count }, (_, index) => index + 1);
  const all = numbers.map(unusual);
  const of = <T>(pick: (one: Unusual) => T) => all.map(pick);
  await superuser`
    WITH given AS (
      SELECT number, uuidv7() AS id, 'sim-' || lpad(number::text, 5, '0') AS name, (number / ${RACK}::int) AS rack,
             silent, status, version, finding, skew, capabilities
      FROM unnest(${numbers}::int[], ${of((one) => one.silentSeconds ?? 3)}::int[],
                  ${of((one) => one.status ?? "active")}::text[], ${of((one) => one.version ?? "1.4.0")}::text[],
                  ${of((one) => one.finding ?? null)}::text[], ${of((one) => one.clockSkewMs ?? 0)}::int[],
                  ${of((one) => (one.capabilities ?? ["os_users"]).join(" "))}::text[])
        AS one (number, silent, status, version, finding, skew, capabilities)
    ), made AS (
      INSERT INTO nodes (id, org_id, name, status, created_at)
      SELECT id, ${orgId}, name, status, now() - interval '90 days' FROM given RETURNING id
    ), issued AS (
      INSERT INTO node_certificates (serial, org_id, node_id, key_sha256, chain, issued_for, issued_at, not_before, not_after)
      SELECT replace(id::text, '-', ''), ${orgId}, id, '\\x00', 'chain', 'enrollment', now() - interval '1 hour',
             now() - interval '1 hour', now() + interval '23 hours' FROM given
    )
    INSERT INTO node_presence (node_id, org_id, heartbeat_at, instance_id, boot_id, clock_skew_ms, attributes, heartbeat)
    SELECT id, ${orgId}, now() - silent * interval '1 second', id, 'boot', skew,
      json_build_object('agent_version', version, 'profile', 'default version 1',
        'subnet', '10.' || (rack >> 8) || '.' || (rack & 255) || '.0/24'),
      replace(json_build_object(
      'sent_at', now(), 'started_at', now() - interval '3 days',
      'facts', json_build_object(
        'agent_version', version, 'hostname', name,
        'os', json_build_object('family', 'linux', 'flavour', 'debian', 'version', '13', 'kernel', '6.12.0'),
        'arch', 'x64', 'cpus', 32, 'memory_bytes', 137438953472, 'memory_free_bytes', 68719476736,
        'disk', json_build_object('total_bytes', 1030792151040, 'free_bytes', 515396075520), 'accelerators', '[]'::json,
        'capabilities', to_json(string_to_array(capabilities, ' ')), 'account', 'root',
        'advertised_address', '10.' || (rack >> 8) || '.' || (rack & 255) || '.' || (number % ${RACK}::int + 1)),
      'certificate', json_build_object('serial', replace(id::text, '-', ''), 'not_before', now() - interval '1 hour',
        'not_after', now() + interval '23 hours', 'renewal_due_at', now() + interval '11 hours'),
      'profile', json_build_object('name', 'default', 'version', 1), 'verifier_kids', '["k1"]'::json, 'running', 0,
      'unsent_results', 0,
      'findings', CASE WHEN finding IS NULL THEN '[]'::json
                       ELSE json_build_array(json_build_object('reason', finding, 'detail', '')) END,
      'counters', json_build_object('identity_rejections', 0, 'tasks_started', 12, 'tasks_succeeded', 12,
        'tasks_failed', 0, 'tasks_refused', 0, 'polls_failed', 0, 'results_failed', 0, 'renewals_failed', 0))::text, '"findings" : ', '"findings":')::json
    FROM given`;
  const found = await superuser<{ id: string; finding: string }[]>`
    SELECT n.id, f->>'reason' AS finding FROM nodes n JOIN node_presence p ON p.node_id = n.id,
      json_array_elements(p.heartbeat->'findings') f WHERE n.org_id = ${orgId}`;
  const observedAt = new Date();
  await recordObservations(
    superuser,
    found.map(({ id: nodeId, finding: key }): NewObservation => {
      return { nodeId, kind: "finding", key, value: "present", observer: "agent", observedAt };
    }),
  );
  await classifyAll(superuser);
  await superuser`ANALYZE nodes, node_presence, node_certificates, node_verdicts`;
}

/** As the worker does, at once. */
export async function classifyAll(superuser: Sql, changes: Partial<typeof defaultPolicy> = {}): Promise<void> {
  const policy = { ...defaultPolicy, ...changes };
  await findUnnoticed(superuser, policy);
  await noticeStandings(superuser);
  await classifyWhatIsDue(superuser, policy);
  await relateIncidents(superuser, defaultCommonCausePolicy);
}
