// What is known about a node and the platform it depends on: one observation by one observer at one time. Evidence is only
// ever appended; what it means is decided in `classify/`.

/** Any code: a newer agent may have one that this server does not know. */
const anyCode = null;

/** The values that each kind of observation can have. */
export const observedValues = {
  /** `instance_id` of the agent that sent it, and `serial` of the certificate that it came with. */
  heartbeat: ["received"],
  /** The agent's connection, with `why` it was closed. */
  connection: ["open", "closed"],
  /** What operators decided about the node. */
  standing: ["enrolling", "active", "draining", "quarantined", "revoked", "retired"],
  /** The certificate issued last: `not_before`, `not_after` (milliseconds), `serial`, and what it was `issued_for`. */
  certificate: ["issued"],
  /** By `key`, the code of the agent's own finding, as of its last heartbeat. */
  finding: ["present", "absent"],
  /** The reason of the newest diagnostic record of the host, uploaded or handed in. */
  diagnostic: anyCode,
  /**
   * The code of a request refused because of its certificate. `endpoint`: where; `issuer`: `ours`,
   * `earlier` (ours before) or `unknown`, which is a claim that anyone can make and has a `key` of its own.
   */
  refusal: anyCode,
  /** The addresses that the node uses, against the active profile; by `key`, `api` or `terminal`. */
  profile: ["matches", "differs"],
  /** `skew_ms`, positive when the node's clock is ahead. */
  clock: ["measured"],
  /** `used_percent` of the root file system, and `pressure_percent`, from which on the host calls it nearly full. */
  disk: ["measured"],
  /** The newest that the node showed, with `expires_at` (milliseconds). */
  recovery_token: ["current", "missing", "expired", "consumed"],
  recovery_endpoint: ["reachable", "unreachable"],
  /** How many agents proved at the same time that they have the node's key. */
  instances: ["one", "two_or_more"],
  /** The address that the node reports, against the one on record. */
  address: ["same", "changed"],
  /** The last task that the node completed, with the `instance_id` of the agent that reported it. */
  task: ["completed"],
  /** Its queue as it is read: whether tasks are shown as current that have expired. */
  queue: ["current", "expired"],
  /** Tasks that expired before the node took them. */
  queued_tasks: ["none", "past_expiry"],
  /** Dispatched tasks whose lease ended without a result, and which may run again. */
  dispatched_tasks: ["none", "past_lease"],
  /** Whether the node accepted the last task that it was given, or refused what the server signed, with the `code`. */
  task_verification: ["passed", "failed"],
  /** By `key`, `agent` or `host`: the id of its last start. History, from which no cause follows. */
  started: anyCode,
  /** By `key`, `unit` or `env`: the SHA-256 of that file on the host, or `missing`. History, too. */
  host_file: anyCode,
  agent_build: ["supported", "older_than_required"],
  /** As the service manager of the host reports it. */
  host_service: ["active", "inactive", "failed"],
  host_exec: ["runs", "format_error", "missing"],
  ssh: ["succeeded", "failed"],
  guest_agent: ["healthy", "down"],
  /** `ready`, or the code that the last terminal on the node failed with. */
  terminal: anyCode,
  /** Checks of an app on the node. */
  app_status: ["running", "stopped", "expired"],
  app_endpoint: ["succeeded", "failed_past_threshold"],
  app_credential: ["succeeded", "failed_repeatedly"],
  /** Of the platform: whether the control plane serves nodes. */
  control_plane: ["ready", "not_ready"],
  /** Of the platform: the CA that signs node certificates, against the one that the ingress trusts. */
  ca_trust: ["match", "mismatch"],
  /** Of the platform: whether the signing CA is the one from before the last start. */
  signing_ca: ["unchanged", "changed"],
} as const;
type Table = typeof observedValues;
export type Kind = keyof Table;
export const kinds = Object.keys(observedValues) as [Kind, ...Kind[]];
export type Values = { [K in Kind]: Table[K] extends readonly (infer Value)[] ? Value : string };

export const observers = [
  "control_plane",
  "agent",
  "host",
  "gateway",
  /** A page or command line of a user. */
  "client",
  "operator",
  "preflight",
  "app_runtime",
] as const;
export type Observer = (typeof observers)[number];

type Common = {
  id: string;
  /** Tells several observations of one kind apart, such as the code of a finding. */
  key?: string | undefined;
  observer: Observer;
  /** By the observer's clock and by ours, in milliseconds. They differ when evidence arrives late. */
  observedAt: number;
  /** Of one that was repeated unchanged: the first time. */
  firstAt?: number | undefined;
  receivedAt: number;
  /** Of what made the observer see it: leads to the audit and the logs. */
  /** Under which its observer recorded it. Not a part of what is classified. */
  correlationId?: string | undefined;
  /** Numbers and short texts that belong to it. Nothing secret. */
  detail?: Readonly<Record<string, string | number | boolean | null>> | undefined;
};
export type Observation = { [K in Kind]: Common & { kind: K; value: Values[K] } }[Kind];
export type ObservationOf<K extends Kind> = Extract<Observation, { kind: K }>;

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;

/**
 * How long an observation may be relied upon; null: until another one replaces it. Those of a heartbeat and of its findings
 * depend on policy.
 */
export const freshForMs: Readonly<Record<Kind, number | null>> = {
  heartbeat: null,
  connection: null,
  standing: null,
  certificate: null,
  finding: null,
  diagnostic: 24 * HOUR,
  refusal: 30 * MINUTE,
  profile: null,
  clock: null,
  disk: null,
  recovery_token: null,
  recovery_endpoint: 30 * MINUTE,
  instances: 10 * MINUTE,
  address: 30 * MINUTE,
  task: HOUR,
  queue: MINUTE,
  queued_tasks: 10 * MINUTE,
  dispatched_tasks: HOUR,
  task_verification: HOUR,
  started: null,
  host_file: null,
  agent_build: null,
  host_service: 24 * HOUR,
  host_exec: 24 * HOUR,
  ssh: 24 * HOUR,
  guest_agent: 24 * HOUR,
  terminal: HOUR,
  app_status: 15 * MINUTE,
  app_endpoint: 15 * MINUTE,
  app_credential: HOUR,
  control_plane: 2 * MINUTE,
  ca_trust: 10 * MINUTE,
  signing_ca: null,
};
