// What a preflight is run with, and what it has found out so far. The command line and the api run the same checks; they
// differ in where they are, and in whether they can reach the host.

import type { Client } from "@holdfast/contracts/client";
import type { Allocation } from "@holdfast/contracts/endpoints/allocations";
import type { NodeDetail } from "@holdfast/contracts/endpoints/nodes";
import type { PreflightHop, PreflightOmission, PreflightVantage } from "@holdfast/contracts/preflight/checks";
import type { Outcome } from "@holdfast/contracts/preflight/decide";
import type { HostEndpoint, HostPreflight } from "@holdfast/contracts/preflight/host-report";
import type { ReasonCode } from "@holdfast/contracts/reasons/catalogue";
import type { Dialled } from "./web-socket.ts";

export type Means = {
  /** The public API, as the person who runs it. */
  client: Client;
  /** Where public addresses are checked from. */
  vantage: Extract<PreflightVantage, "command_line" | "control_plane">;
  nodeId: string;
  allocationId: string | null;
  correlationId: string;
  /** As people reach it; null: not known. */
  apiUrl: string | null;
  /** Instead of the address that comes with a token. */
  terminalUrl?: string | undefined;
  expected: ExpectedOfNode;
  /** Asks the host itself, over SSH or here. Rejects if it cannot be reached. */
  askHost?: ((signal: AbortSignal) => Promise<HostPreflight>) | undefined;
  hostBy?: "ssh" | "here";
  /** The host's own record, for when it does not report. */
  hostRecord?: HostPreflight | undefined;
  /** How long the probe of `tasks/wait` is held. */
  holdSeconds: number;
  /** Of `--run-ws-smoke`: what an edge knows a browser by; `authenticated` false: nothing. */
  smoke?: { headers: Record<string, string>; authenticated: boolean; origin: string | null } | undefined;
  /** For https and wss. */
  tls?: object | undefined;
  other?: { environment: string; api: boolean | null; terminal: boolean | null } | undefined;
};

type ExpectedOfNode = {
  node_runtime_api_url: string | null;
  node_runtime_resolve_address: string | null;
  node_terminal_url: string | null;
  node_terminal_resolve_address: string | null;
};

/** What the checks before have found. */
export type Found = {
  node?: NodeDetail;
  allocation?: Allocation;
  /** Set by whoever asked first; undefined inside: it could not be asked. */
  host?: { report: HostPreflight | undefined; problem: string | null };
  /** The node's own way to its endpoints, by a task. */
  probed?: { endpoints: HostEndpoint[]; problem: string | null };
  token?: { token: string; url: string; session_id: string; deadline_seconds: number };
  socket?: Dialled;
  /** Whether the smoke of both WebSockets was good. */
  smokePassed?: boolean;
};

export type Checked = {
  outcome: Outcome;
  from: PreflightVantage | null;
  detail: string;
  /** What is known only now of a hop that was checked before. */
  corrects?: { hop: PreflightHop; by: Checked };
};
export type Check = (means: Means, found: Found, signal: AbortSignal) => Promise<Checked>;

export const passed = (from: PreflightVantage, detail: string): Checked => ({
  ...{ outcome: { status: "passed" }, from, detail },
});
export const failed = (from: PreflightVantage, code: ReasonCode, detail: string): Checked => ({
  ...{ outcome: { status: "failed", code }, from, detail },
});
export const unknown = (detail: string, why: PreflightOmission = "no_evidence"): Checked => ({
  ...{ outcome: { status: "not_run", why }, from: null, detail },
});
