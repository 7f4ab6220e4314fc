// The form of a host's part of a preflight, for agents: without the schema, which nodes do not have.

import type { HOST_PREFLIGHT_FORMAT, HostEndpoint, HostPreflight } from "./host-report.ts";

export type { HostEndpoint, HostPreflight };
export const hostPreflightFormat: typeof HOST_PREFLIGHT_FORMAT = "holdfast-host-preflight/1";
