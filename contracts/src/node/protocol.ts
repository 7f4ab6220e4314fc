// What agents and the node-facing API say to each other. Types for both; the schemas are what the
// server checks requests with. The agent checks answers by the few fields it acts on, so that an older
// agent understands a newer server.

import { z } from "zod";
import { AnyText, Id, ReasonText, ReportedText, Text, Time } from "../fields.ts";
import { BATCH, LONGEST_WAIT_SECONDS, MOST_VERIFIER_KEYS } from "./limits.ts";
import { HeldRecoveryToken, RecoveryToken } from "./recovery.ts";
import { AppliedBundle } from "./recovery-bundle.ts";
import { EnvironmentProfile, TrustOffer, TrustVersions, VerifierKeys } from "./trust.ts";
import { VmHostReport } from "./vm-host.ts";

export { EnvironmentProfile, VerifierKeys };

export const nodeStatuses = ["enrolling", "active", "draining", "quarantined", "retired"] as const;
export const NodeStatus = z.enum(nodeStatuses);
export type NodeStatus = z.infer<typeof NodeStatus>;

/** The node's status at the server, returned with every heartbeat and poll. */
export const NodeStanding = z.strictObject({ status: NodeStatus, reason: z.string().nullable() });
export type NodeStanding = z.infer<typeof NodeStanding>;

const Reported = Text.max(200);
/** Detected on the host, never configured. Bounded, because it is stored. */
export const HostFacts = z.strictObject({
  agent_version: Reported,
  hostname: Reported,
  os: z.strictObject({ family: Reported, flavour: Reported, version: Reported, kernel: Reported }),
  arch: Reported,
  cpus: z.int().nonnegative(),
  memory_bytes: z.int().nonnegative(),
  memory_free_bytes: z.int().nonnegative(),
  disk: z.strictObject({ total_bytes: z.int().nonnegative(), free_bytes: z.int().nonnegative() }),
  accelerators: z.array(z.strictObject({ vendor: Reported, model: Reported, address: Reported })).max(64),
  /** What the agent can do beyond the ordinary, such as `os_users`. */
  capabilities: z.array(Reported).max(32),
  /** The account the agent runs as: all that an agent without root can offer. */
  account: Reported,
  /** Reported by the operator of the host; never dialled. */
  advertised_address: Reported.nullable(),
});
export type HostFacts = z.infer<typeof HostFacts>;

/** Of an address, so that nothing secret can be in it: neither a path, a query nor a password. */
const Origin = Text.max(300).refine(
  (text) => URL.parse(text)?.origin === text,
  "must be an address without path, such as https://nodes.example.com:18442",
);
const Sha256 = z.string().regex(/^[0-9a-f]{64}$/, "must be a SHA-256, in hex");
/** Whose machine it is, or where in the network: a word that nodes have in common. */
export const NodeLabel = z
  .string()
  .regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$/, "up to 63 letters, digits, dots, underscores and hyphens");

/** How this agent is set up: what it connects to, and the files that decide about it. Digests only, never their content. */
export const AgentSetup = z.strictObject({
  /** In use, whatever the profile says. */
  urls: z.strictObject({ node_api: Origin, node_terminal: Origin.nullable() }),
  install_root: Reported.nullable(),
  unit_sha256: Sha256.nullable(),
  env_sha256: Sha256.nullable(),
  /** This host's end of its connection to the server; null: not connected yet, or the server is this host. */
  source_address: z.union([z.ipv4(), z.ipv6()], "must be an IP address").nullable(),
  provider: NodeLabel.nullable(),
  network_side: NodeLabel.nullable(),
  /** Of the root file system, and from which usage on the agent reports it as nearly full; null: not known. */
  root_disk: z
    .strictObject({ used_percent: z.number().min(0).max(100), pressure_percent: z.number().min(0).max(100) })
    .nullable(),
});
export type AgentSetup = z.infer<typeof AgentSetup>;

const Counter = z.int().nonnegative();
/** Counts the heartbeats of a node that say what they were sent `after`. */
const HeartbeatNumber = z.int().nonnegative();
/** Not strict, and neither are its larger parts: a node whose agent is newer than this server is not refused for it. */
export const Heartbeat = z.object({
  sent_at: Time,
  started_at: Time,
  facts: z.object(HostFacts.shape),
  certificate: z.strictObject({ serial: Reported, not_before: Time, not_after: Time, renewal_due_at: Time }),
  profile: z.strictObject({ name: Reported, version: z.int().positive() }),
  /** kids of the verifier keys it has. */
  verifier_kids: z.array(Reported).max(MOST_VERIFIER_KEYS),
  /** Not sent by agents that do not check signatures of trust yet. */
  trust: TrustVersions.optional(),
  /** Not sent by agents from before it existed. */
  setup: z.object(AgentSetup.shape).optional(),
  /** The newest recovery token that it has; null: none. Not sent by agents from before it existed. */
  recovery: HeldRecoveryToken.nullable().optional(),
  /**
   * The number of the last heartbeat that this process was answered; 0: none yet. Left out of a heartbeat that is sent beside
   * another one, and by agents from before it existed.
   */
  after: HeartbeatNumber.optional(),
  /** In the first heartbeats after an operator applied a recovery bundle on the host. */
  applied_bundle: AppliedBundle.optional(),
  /** Of nodes with the capability `vm_host`. */
  vm_host: VmHostReport.optional(),
  running: z.int().nonnegative(),
  unsent_results: z.int().nonnegative(),
  /** Its present self-check findings, by reason. */
  findings: z
    .array(
      z.strictObject({
        reason: Reported,
        detail: Text.max(400),
        /** Of the diagnostic record that reports it. */
        correlation_id: ReportedText.max(64).optional(),
      }),
    )
    .max(32),
  /** A counter that an older agent has and nothing reads is left out. */
  counters: z.object({
    identity_rejections: Counter,
    tasks_started: Counter,
    tasks_succeeded: Counter,
    tasks_failed: Counter,
    tasks_refused: Counter,
    polls_failed: Counter,
    results_failed: Counter,
    renewals_failed: Counter,
    recovery_attempts: Counter.optional(),
    recovery_successes: Counter.optional(),
    recovery_failures: Counter.optional(),
    /** Attempts that were due but not made, because the last certificate was rejected too. */
    recovery_suppressed: Counter.optional(),
  }),
});
export type Heartbeat = z.infer<typeof Heartbeat>;

/** Counts deliveries; as large as the database's integer. */
const Generation = z.int().positive().max(2_147_483_647);
export const Held = z.strictObject({ task_id: Id, generation: Generation });
export type Held = z.infer<typeof Held>;

export const HeartbeatRequest = Heartbeat.extend({ holding: z.array(Held).max(256) });
export const HeartbeatAnswer = z.strictObject({
  server_time: Time,
  node: NodeStanding,
  /** Held tasks to stop: cancelled, or no longer this node's. */
  cancel: z.array(Id),
  /** Of the heartbeat, if it said what it was sent `after`. */
  number: HeartbeatNumber.optional(),
  /** Another one is wanted now. */
  again: z.literal(true).optional(),
  /** Present when something that the agent has is out of date. */
  trust: TrustOffer.optional(),
  /** A newer recovery token, before the present one gets old. */
  recovery: RecoveryToken.optional(),
  /** The same without signatures, for agents that report no `trust`. All others refuse them. */
  verifiers: VerifierKeys.optional(),
  profile: EnvironmentProfile.optional(),
});
export type HeartbeatAnswer = z.infer<typeof HeartbeatAnswer>;

/** `task:generation` pairs separated by commas, because a GET has no body. */
const HoldingText = AnyText.max(16_000)
  .transform((text) =>
    text === ""
      ? []
      : text.split(",").map((pair) => {
          const [task_id, generation] = pair.split(":");
          return { task_id, generation: Number(generation) };
        }),
  )
  .pipe(z.array(Held).max(256));

export const WaitQuery = z.strictObject({
  wait: z.coerce.number().int().min(0).max(LONGEST_WAIT_SECONDS).default(LONGEST_WAIT_SECONDS),
  /** How many more tasks the agent would take; 0 only learns about cancellations. */
  room: z.coerce.number().int().min(0).max(BATCH).default(1),
  holding: HoldingText.default([]),
  /** Only whether such a request is accepted and can be held: nothing is claimed, and nobody is counted as connected. */
  probe: z.literal("true").optional(),
});

export const TaskOffer = z.strictObject({
  task_id: Id,
  generation: Generation,
  task_type: z.string(),
  params: z.unknown(),
  /** Values that its type declares as secret, by name. Not signed, never journalled. */
  secrets: z.record(z.string(), z.string()).optional(),
  expires_at: Time,
  /** The node it was signed for: lets the agent tell a misdirected task from a changed one. */
  node_id: Id.optional(),
  /** Detached JWS (EdDSA) over the canonical JSON of task_id, node_id, task_type, params, expires_at. */
  signature: z.string(),
  correlation_id: z.string(),
});
export type TaskOffer = z.infer<typeof TaskOffer>;

export const WaitAnswer = z.strictObject({
  node: NodeStanding,
  tasks: z.array(TaskOffer),
  cancel: z.array(Id),
  /** A heartbeat is wanted now. */
  beat: z.literal(true).optional(),
  /** It was a probe. */
  probe: z.literal(true).optional(),
});
export type WaitAnswer = z.infer<typeof WaitAnswer>;

export const MOST_PHASES = 256;
/** Milliseconds by phase, in order of appearance. Bounded, because it is stored with every report. */
export const PhaseTimings = z
  .record(ReportedText.max(64), z.number().nonnegative())
  .refine((timings) => Object.keys(timings).length <= MOST_PHASES, `at most ${MOST_PHASES} phases`);
export type PhaseTimings = z.infer<typeof PhaseTimings>;

export const TaskFailure = z.strictObject({
  code: ReportedText.max(64),
  message: ReportedText.max(2000),
  next_step: ReportedText.max(2000),
});
export type TaskFailure = z.infer<typeof TaskFailure>;

export const ProgressReport = z.strictObject({
  generation: Generation,
  phase: ReportedText.max(64),
  /** By the type's own schema. */
  data: z.unknown().optional(),
  timings: PhaseTimings,
});
export type ProgressReport = z.infer<typeof ProgressReport>;
export const ProgressAnswer = z.strictObject({ cancel: z.boolean() });

const Outcome = z.discriminatedUnion("status", [
  z.strictObject({ status: z.literal("succeeded"), result: z.unknown() }),
  z.strictObject({ status: z.enum(["failed", "refused", "cancelled", "interrupted"]), failure: TaskFailure }),
]);
export type Outcome = z.infer<typeof Outcome>;

const resultFields = { generation: Generation, timings: PhaseTimings, outcome: Outcome };
export const ResultReport = z.strictObject(resultFields);
export const ResultsReport = z.strictObject({
  results: z
    .array(z.strictObject({ task_id: Id, ...resultFields }))
    .min(1)
    .max(BATCH),
});
export type TaskResultReport = z.infer<typeof ResultsReport>["results"][number];

/**
 * What became of a posted result. Every verdict is final: the agent forgets the result.
 * - `accepted`: stored; the task has ended with it.
 * - `duplicate`: the same was accepted before.
 * - `late`: the task had ended otherwise (expired, cancelled) or went to a newer generation; kept as evidence.
 * - `unknown`: there is no such task of this node.
 */
export const Verdict = z.enum(["accepted", "duplicate", "late", "unknown"]);
export type Verdict = z.infer<typeof Verdict>;
export const ResultAnswer = z.strictObject({ verdict: Verdict });
export const ResultsAnswer = z.strictObject({
  verdicts: z.array(z.strictObject({ task_id: Id, verdict: Verdict })),
});

/** What the host's service manager saw when the agent ended, in the record of it (`deploy/last-words.sh`). */
export const HostWords = z.strictObject({
  service: z.enum(["inactive", "failed"]),
  /** Why the agent's program could not be executed, if that was it. */
  exec: z.enum(["format_error", "missing"]).optional(),
});
export type HostWords = z.infer<typeof HostWords>;

export const DiagnosticRecord = z.strictObject({
  /** Counts up over the life of the agent's state directory. */
  seq: z.int().nonnegative(),
  at: z.iso.datetime(),
  /** A newer agent may have one that this server does not know. */
  reason: ReasonText,
  /** What exactly was seen; no secret. */
  detail: Text.max(400),
  instance_id: z.uuid(),
  correlation_id: ReportedText.max(64).nullable(),
  host: HostWords.optional(),
});
export type DiagnosticRecord = z.infer<typeof DiagnosticRecord>;

export const RenewRequest = z.strictObject({ csr: AnyText.max(4096).describe("PKCS#10, PEM.") });
export const IssuedCertificate = z.strictObject({
  /** Leaf first, then the issuing CA; PEM. */
  certificate: z.string(),
  not_before: Time,
  not_after: Time,
});
export type IssuedCertificate = z.infer<typeof IssuedCertificate>;

export const DiagnosticsReport = z.strictObject({
  records: z.array(DiagnosticRecord).min(1).max(64),
  /** By the clock that the records are from: how much it is off does not change when something happened. */
  sent_at: Time.optional(),
});
/** The newest record the server has; the agent sends only newer ones. */
export const DiagnosticsAnswer = z.strictObject({ seq: z.int().nonnegative() });
