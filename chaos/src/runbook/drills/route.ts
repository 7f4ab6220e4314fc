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
import { PATIENCE_SECONDS, within } from "../../until.ts";
import type { Drill, DrillScene } from "../drill.ts";
import { cell, gatewayOf, hop, linesOf, sameId, sameIdExpected, terminalOfUser } from "./cells.ts";

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

/** Client and node never meet at one gateway: only so does the loss of Redis break anything. */
const common = { labName: "route", lab: { gateway: true, gatewayPair: true }, user: "terminal" } as const;

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

/** The store in which the gateways record which of them has a terminal. Each of them notices by itself. */
function redisStopped(lab: Lab): Fault {
  const { redis, startRedis, program, ofNodes } = gatewayOf(lab);
  const bothSay = async (words: string, from: number) => {
    const said = [program, ofNodes].map((one) => one?.line(({ msg = "" }) => msg.startsWith(words), from));
    await within(`both gateways say: ${words}`, PATIENCE_SECONDS, Promise.all(said));
  };
  return {
    what: "Redis is stopped, and the gateways cannot find each other's terminals",
    async inject() {
      const from = Date.now();
      await redis().stop("SIGKILL");
      await bothSay("Redis is unreachable", from);
    },
    async repair() {
      const from = Date.now();
      await startRedis();
      await bothSay("Redis is reachable", from);
    },
  };
}

/** As the gateway of clients reports it. */
async function bindingOf({ lab }: DrillScene): Promise<string> {
  const { host, port } = gatewayOf(lab).public;
  const response = await fetch(`http://${host}:${port}/readyz`);
  const { checks } = (await response.json()) as { checks: Record<string, { reason?: string }> };
  return `${checks["redis"]?.reason ?? "reachable"}; ${await redisAnswer({ lab } as DrillScene)}`;
}

export const bindingLost: Drill = {
  ...common,
  name: "terminal-redis-lost",
  title: "Redis is unavailable, and the node's stream reaches another gateway than the client",
  rows: [{ row: "M7", variant: "Redis/session binding" }, { row: "L9" }],
  fault: redisStopped,
  expect: {
    user: { code: "terminal_binding_unavailable", hop: "browser_terminal_ws", next_step: /checks Redis/ },
    page: refusedUpgrade.page,
    preflight: refusedUpgrade.preflight,
  },
  before: {
    ...upgradeEvidence,
    "M7: Gateway close code/reason": cell(
      /^terminal_binding_unavailable at browser_terminal_ws; failed from gateway: .*cannot reach Redis/,
      async (scene) => {
        const { failure } = await terminalOfUser(scene);
        const { take } = hop("before", "browser_terminal_ws", /./);
        return `${failure?.code} at ${failure?.hop}; ${await take(scene)}`;
      },
    ),
    "M7: Redis/session binding": cell(
      /^terminal_binding_unavailable: Redis is unreachable; Could not connect to Redis/,
      bindingOf,
    ),
  },
  after: {
    ...upgradeBack,
    "the stream of the node is passed on between the gateways again": cell(
      /passes a node's stream on/,
      ({ lab, after }) => linesOf(gatewayOf(lab).ofNodes, after.session_id),
    ),
  },
};
