// A certificate in a header, sent to every listener of an installation by a local process: as a plain request, as an
// upgrade, without a certificate and with the node's own. All are refused, and the audit knows of all.

import { once } from "node:events";
import { readFileSync } from "node:fs";
import { request as askClear, type IncomingMessage } from "node:http";
import { request as askTls } from "node:https";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { createClient } from "@holdfast/contracts/client";
import { listPlatformAudit } from "@holdfast/contracts/endpoints/audit";
import { CERTIFICATE_HEADER } from "@holdfast/contracts/headers";
import { LIVE_PATH } from "@holdfast/contracts/public/live";
import { nodeStreamPath, TERMINAL_PATH } from "@holdfast/contracts/terminal/frames";
import { readIdentity } from "@holdfast/node-agent/identity/identity-file";
import { stateFiles } from "@holdfast/node-agent/identity/state-directory";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Ready } from "../../../testkit/processes/holdfast.ts";
import { type FirstNode, openFirstNode } from "../support/first-node.ts";

let first: FirstNode;
let ready: Ready;
let own: { cert: string; key: string };

beforeAll(async () => {
  // Its diagnostics ride behind its heartbeats.
  first = await openFirstNode({ HOLDFAST_AGENT_HEARTBEAT_SECONDS: "1" });
  ready = await first.up.ready;
  const { chainPem, keyPem } = readIdentity(stateFiles(ready.agent?.state_dir ?? ""));
  own = { cert: chainPem, key: keyPem };
});
afterAll(() => first?.cleanUp());

const upgrade = {
  connection: "upgrade",
  upgrade: "websocket",
  "sec-websocket-version": "13",
  "sec-websocket-key": Buffer.alloc(16).toString("base64"),
};

/** What a request with the node's certificate in the header is told. */
async function send(
  url: string,
  options: { tls?: object; headers?: Record<string, string> } = {},
): Promise<unknown[]> {
  const headers = { [CERTIFICATE_HEADER]: encodeURIComponent(own.cert), ...options.headers };
  const outgoing = url.startsWith("https:")
    ? askTls(url, { agent: false, rejectUnauthorized: false, ...options.tls, headers })
    : askClear(url, { agent: false, headers });
  const [response] = (await once(outgoing.end(), "response")) as [IncomingMessage];
  const body = JSON.parse(await text(response)) as { code?: string };
  return [response.statusCode, body.code];
}

describe("a forged certificate", () => {
  it("ID-13 is refused on every listener, from a local process too, and is in the audit", async () => {
    const stream = nodeStreamPath(first.node.id, first.node.id);
    const heartbeat = `/internal/v1/nodes/${first.node.id}/heartbeat`;
    const agent = first.installation.upFile().agent?.url;
    const attempts: [string, Parameters<typeof send>[1]?][] = [
      [`${ready.api_url}/v1/me`],
      [`${ready.api_url}/healthz`],
      [`${ready.api_url}${LIVE_PATH}`, { headers: upgrade }],
      [`${ready.node_api_url}${heartbeat}`],
      [`${ready.node_api_url}${heartbeat}`, { tls: own }],
      [`${ready.node_api_url}/v1/trust-bundle`],
      [`${ready.api_internal_url}/internal/v1/services/enroll`],
      [`${ready.api_internal_url}/internal/v1/news`, { tls: own }],
      [`${ready.gateway_url}/healthz`],
      [`${ready.gateway_url}${TERMINAL_PATH}`, { headers: upgrade }],
      [`${ready.node_terminal_url}/`],
      [`${ready.node_terminal_url}${stream}`, { headers: upgrade }],
      [`${ready.node_terminal_url}${stream}`, { headers: upgrade, tls: own }],
      [`${agent}/healthz`],
      [`${agent}/v1/capacity`, { headers: { [CERTIFICATE_HEADER]: "" } }],
    ];
    for (const [url, options] of attempts) {
      expect(await send(url, options), url).toEqual([403, "certificate_header_refused"]);
    }

    const token = readFileSync(join(ready.data_dir, "operator-token"), "utf8").trim();
    const operator = createClient({ baseUrl: ready.api_url, token });
    const seen = async () => {
      const { items } = await operator(listPlatformAudit, { query: { action: "certificate_header.send" } });
      return items.map(({ result, reason, details }) => [details["listener"], result, reason]);
    };
    const refused = (listener: string) => [listener, "denied", "certificate_header_refused"];
    // One each, at once; what follows within a minute is told together.
    const listeners = ["agent", "api", "gateway", "internal", "node_api", "node_terminal"];
    await expect.poll(async () => (await seen()).sort()).toEqual(listeners.map(refused));
  });
});
