// The options of `holdfast preflight`, as commander names them.

import type { ServerOptions } from "../../client/connect.ts";

export type Options = ServerOptions & {
  apiBase?: string;
  terminalBase?: string;
  allocationId?: string;
  nodeId?: string;
  nodeHost?: string;
  nodeUser?: string;
  nodeRuntimeApiUrl?: string;
  nodeRuntimeResolveAddress?: string;
  nodeTerminalUrl?: string;
  nodeTerminalResolveAddress?: string;
  runWsSmoke?: boolean;
  edgeCookieFile?: string;
  edgeHeaderFile?: string;
  diagnostics?: string;
  compareProfile?: string;
  idleSeconds?: number;
  all?: boolean;
  store: boolean;
};
