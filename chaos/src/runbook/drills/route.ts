// Between people and the gateway: the public route, WebSocket upgrades, and the token that travels as a subprotocol.

import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import {
  openIdentityProxy,
  openOtherSite,
  openProxyWithoutTokens,
  openProxyWithoutUpgrades,
  type Standing,
  type Target,
  type Way,
} from "../../../../cli/test/support/edges.ts";
import type { Fault } from "../../faults/fault.ts";
import type { Lab } from "../../lab/lab.ts";
import type { Drill, DrillScene } from "../drill.ts";
import { cell, gatewayOf, hop, sameId, sameIdExpected } from "./cells.ts";

const execute = promisify(execFile);
const smoke = fileURLToPath(
  new URL("../../../../scripts/ops/pomerium_kind_ws_authenticated_smoke.sh", import.meta.url),
);

/** The front at the desk plays the public edge: it leads elsewhere from now on. */
function edgeLeads(lab: Lab, what: string, open: (gateway: () => Target) => Promise<Standing> | Way): Fault {
  const { front, public: place } = gatewayOf(lab);
  let standing: Standing | undefined;
  return {
    what,
    async inject() {
      const way = await open(() => place);
      standing = typeof way === "object" && "stop" in way ? way : undefined;
      front.lead(standing ? standing.port : (way as Way));
    },
    async repair() {
      front.lead(place);
      await standing?.stop();
    },
  };
}

const common = { labName: "route", lab: { gateway: true }, user: "terminal" } as const;

const missing = {
  user: {
    code: "terminal_public_route_missing",
    hop: "terminal_public_route",
    next_step: /its \/healthz must respond/,
  },
  page: { hop: "terminal_public_route", signal: "terminal_public_route_missing" },
  preflight: {
    ...{ failed_hop: "terminal_public_route", symptom_hop: null },
    ...{ signal: "terminal_public_route_missing", owner: "edge" },
  },
} as const;

const routeBack = {
  "M6: helper sees terminal `/healthz` 200": hop(
    "after",
    "terminal_public_route",
    /^passed .*\/healthz answers 200$/,
  ),
  "M6: authenticated Pomerium WebSocket smoke succeeds": cell(
    /^browser proof: proved, ready$/,
    authenticatedSmoke,
  ),
};

/** Through an identity-aware proxy, which is led to the same gateway. */
async function authenticatedSmoke({ lab }: DrillScene): Promise<string> {
  const proxy = await openIdentityProxy("edge=drill", () => gatewayOf(lab).public);
  const target = ["--node-id", lab.node.id, "--allocation-id", lab.allocation?.id ?? "", "--json"];
  const base = ["--terminal-base", `http://127.0.0.1:${proxy.port}`];
  try {
    const env = { ...lab.control.environment, HOLDFAST_EDGE_COOKIE: "edge=drill" };
    const { stdout } = await execute(smoke, [...target, ...base], { env });
    const { browser_proof, result } = JSON.parse(stdout) as { browser_proof: string; result: string };
    return `browser proof: ${browser_proof}, ${result}`;
  } finally {
    await proxy.stop();
  }
}

export const routeRemoved: Drill = {
  ...common,
  name: "terminal-route-removed",
  title: "nothing listens at the gateway's public address",
  rows: [{ row: "M6", variant: "removed" }, { row: "L8" }],
  fault: (lab) => edgeLeads(lab, "the public route is removed", () => "refused"),
  expect: missing,
  before: {
    "M6: HTTP status from terminal `/healthz`": hop(
      "before",
      "terminal_public_route",
      /^failed .*\/healthz: (socket hang up|read ECONNRESET)$/,
    ),
    "M6: edge route config": cell(
      /^refused instead of [\d.]+:3002$/,
      ({ lab }) => `refused instead of ${placeText(lab)}`,
    ),
    "M6: browser close/error": cell(
      /cannot reach the terminal gateway. \((socket hang up|read ECONNRESET)\)$/,
      ({ user }) => user.message,
    ),
  },
  after: routeBack,
};

export const routeMispointed: Drill = {
  ...common,
  name: "terminal-route-mispointed",
  title: "the gateway's public address leads to another site",
  rows: [{ row: "M6", variant: "mispointed" }],
  fault: (lab) => edgeLeads(lab, "the public route leads to another site", openOtherSite),
  expect: missing,
  before: {
    "M6: HTTP status from terminal `/healthz`": hop(
      "before",
      "terminal_public_route",
      /^failed .*\/healthz answers 404$/,
    ),
    "M6: edge route config": cell(
      /^another site instead of [\d.]+:3002$/,
      ({ lab }) => `another site instead of ${placeText(lab)}`,
    ),
    "M6: browser close/error": cell(/is not the terminal gateway/, ({ user }) => user.message),
  },
  after: routeBack,
};

const placeText = (lab: Lab) => `${gatewayOf(lab).public.host}:${gatewayOf(lab).public.port}`;

const refusedUpgrade = {
  user: {
    code: "terminal_gateway_upgrade_failed",
    hop: "browser_terminal_ws",
    next_step: /may not forward WebSockets/,
  },
  page: { hop: "browser_terminal_ws", signal: "terminal_gateway_upgrade_failed" },
  preflight: {
    ...{ failed_hop: "browser_terminal_ws", symptom_hop: null },
    ...{ signal: "terminal_gateway_upgrade_failed", owner: "terminal_gateway" },
  },
} as const;

const upgradeEvidence = {
  "M7: Gateway close code/reason": hop("before", "browser_terminal_ws", /^failed .*HTTP 4\d\d/),
  "M7: Redis/session binding": cell(/^PONG$/, redisAnswer),
  "M7: token mint correlation ID": cell(sameIdExpected, sameId),
};
const upgradeBack = {
  "M7: smoke receives ready or structured terminal error": hop(
    "after",
    "terminal_ready_frame",
    /^passed .*: ready$/,
  ),
};

/** Redis as the gateway reaches it. */
async function redisAnswer({ lab }: DrillScene): Promise<string> {
  const ask = lab.network.control.host.run("redis-cli", "-h", "127.0.0.1", "ping");
  return (await ask.catch((error: { stderr?: string }) => error.stderr ?? "")).trim();
}

export const upgradeHeaders: Drill = {
  ...common,
  name: "terminal-upgrade-broken",
  title: "a proxy in front of the gateway passes no WebSocket upgrades on",
  rows: [{ row: "M7", variant: "upgrade headers" }],
  fault: (lab) => edgeLeads(lab, "the public edge knows no WebSockets", openProxyWithoutUpgrades),
  expect: refusedUpgrade,
  before: upgradeEvidence,
  after: upgradeBack,
};

export const tokenNotForwarded: Drill = {
  ...common,
  name: "terminal-token-not-forwarded",
  title: "a proxy in front of the gateway does not pass the subprotocol with the token on",
  rows: [{ row: "M7", variant: "token subprotocol" }],
  fault: (lab) => edgeLeads(lab, "the public edge removes subprotocols", openProxyWithoutTokens),
  expect: refusedUpgrade,
  before: upgradeEvidence,
  after: upgradeBack,
};
