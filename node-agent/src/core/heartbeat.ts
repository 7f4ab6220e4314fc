// What the agent reports about itself every minute and when a finding changes, as a function of the state of its parts: building one has no
// side effects. Every text is bounded and redacted, because the server stores and displays it.

import { MOST_VERIFIER_KEYS } from "@holdfast/contracts/node/limits";
import type { AgentSetup, Heartbeat, HostFacts } from "@holdfast/contracts/node/protocol";
import type { HeldRecoveryToken } from "@holdfast/contracts/node/recovery";
import type { VmHostReport } from "@holdfast/contracts/node/vm-host";
import { redact } from "@holdfast/kit/redact";
import type { Finding } from "../diagnostics/self-checks.ts";
import { type AgentFile, trustVersions } from "../identity/agent-file.ts";
import type { CertificateFacts } from "../identity/identity-file.ts";
import type { Counters } from "./counters.ts";

const MOST_FINDINGS = 32;
const LONGEST_DETAIL = 400;

export function buildHeartbeat(known: {
  now: number;
  startedAt: number;
  facts: HostFacts;
  certificate: CertificateFacts;
  renewalDueAt: number;
  agent: AgentFile;
  setup: AgentSetup;
  recovery: HeldRecoveryToken | null;
  running: number;
  unsentResults: number;
  findings: readonly Finding[];
  /** Of the record of a finding, by its reason. */
  correlationIds?: ReadonlyMap<string, string>;
  counters: Counters;
  /** Undefined: this node is no VM host. */
  vmHost?: VmHostReport | undefined;
}): Heartbeat {
  const { serial, notBefore, notAfter } = known.certificate;
  const { profile, verifiers } = known.agent;
  return {
    sent_at: iso(known.now),
    started_at: iso(known.startedAt),
    facts: known.facts,
    certificate: {
      serial,
      not_before: iso(notBefore),
      not_after: iso(notAfter),
      renewal_due_at: iso(known.renewalDueAt),
    },
    profile: { name: profile.name, version: profile.version },
    verifier_kids: verifiers.keys.slice(0, MOST_VERIFIER_KEYS).map(({ kid }) => kid),
    trust: trustVersions(known.agent),
    setup: known.setup,
    recovery: known.recovery,
    running: known.running,
    unsent_results: known.unsentResults,
    findings: known.findings.slice(0, MOST_FINDINGS).map(({ reason, detail }) => ({
      reason,
      detail: redact(detail).slice(0, LONGEST_DETAIL),
      correlation_id: known.correlationIds?.get(reason),
    })),
    counters: { ...known.counters },
    vm_host: known.vmHost,
  };
}

function iso(ms: number): string {
  return new Date(ms).toISOString();
}
