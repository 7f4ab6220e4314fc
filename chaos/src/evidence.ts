// What a scenario gathers: plain data, and everything in it is judged (`judge.ts`). The self-test (`falsify.ts`)
// changes one field after the other and expects the judgement to fail.

/** What one observer got: the user from the command line, the operator from the API, an engineer on the host. */
export type Sighting = {
  by: Observer;
  code: string;
  hop: string | null;
  hop_detail: string | null;
  signal: string | null;
  owner: string | null;
  message: string;
  next_step: string | null;
  /** As the product showed it; null: it showed none. */
  correlation_id: string | null;
  /** From the fault until it was seen. */
  seconds: number;
  /** How long after the fault the product made the id; null where the id is older than the fault by design. */
  id_seconds: number | null;
  found: Found;
};
export type Observer = "user" | "dashboard" | "host" | "history";

/** What the id of a sighting leads to. */
export type Found = {
  audit: AuditFound | null;
  /** The reasons of the diagnostic records that the agent delivered under this id, as the API lists them. */
  delivered: { reasons: string[]; correlation_id: string } | null;
  /** A line of the api's log. */
  server_log: LineFound | null;
  /** A line of the agent's log, written where the request is made and not where the record is. */
  host_log: LineFound | null;
};
type AuditFound = {
  action: string;
  result: string;
  reason: string | null;
  target: string;
  correlation_id: string;
  /** In the event's details. */
  hop: string | null;
  signal: string | null;
  owner: string | null;
};
type LineFound = { message: string; correlation_id: string };

/** The same look before the repair and after it. */
export type Look = {
  connection: string;
  attention: string[];
  /** What the attention was classified as: reason, signal, severity and owner, the worst first. */
  causes: string[];
  host: string[];
};

/** The user's request again, after the repair. */
export type Retry = {
  status: string;
  exit_code: number;
  correlation_id: string;
  /** Of the audit event that names who requested it. */
  audit_correlation_id: string | null;
  /** From the repair. */
  seconds: number;
};

export type Evidence = {
  sightings: Sighting[];
  before: Look;
  after: Look;
  retry: Retry;
  /** What was given as a cause although the failure matrix forbids it, at any time before the repair. */
  forbidden: string[];
};
