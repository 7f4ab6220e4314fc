// Every line of the runbook's troubleshooting, as the message that a person gets in that situation.

import { executionErrors } from "@holdfast/contracts/errors/execution";
import { executionCloseCodes } from "@holdfast/contracts/execution/limits";
import { executionOutcomes } from "@holdfast/contracts/execution/outcomes";
import { type Ended, explainEnd } from "@holdfast/node-agent/execution/pacing";
import { describe, expect, it } from "vitest";

type Words = { message: string; nextStep?: string };
const ended = (how: Ended): Words => explainEnd(how);
const refused = (status: number) => ended({ kind: "refused", status, text: "" });

const lines: [line: string, words: Words, message: RegExp, nextStep: RegExp][] = [
  [
    "No connected agents exist for the organization",
    executionErrors.no_agent_available,
    /No connected agent of the organization/,
    /why each agent was not chosen.*`holdfast agent connect`/,
  ],
  [
    "the agent is connected to GATEWAY_WS_URL",
    refused(404),
    /no WebSocket of a gateway at this address/,
    /gatewayWsUrl/,
  ],
  [
    "the gateway is running and reachable from the agent",
    ended({ kind: "unreachable", message: "connect ECONNREFUSED 10.0.0.7:3002" }),
    /cannot be reached: connect ECONNREFUSED 10.0.0.7:3002/,
    /gateway runs and is reachable from this host/,
  ],
  [
    "the worker has GATEWAY_HTTP_URL and GATEWAY_SERVICE_TOKEN: none",
    executionOutcomes.GATEWAY_NOT_CONFIGURED,
    /no dispatch token/,
    /GATEWAY_HTTP_URL and GATEWAY_SERVICE_TOKEN/,
  ],
  [
    "the worker has GATEWAY_HTTP_URL and GATEWAY_SERVICE_TOKEN: another token",
    executionErrors.unauthorized,
    /token is missing or wrong/,
    /GATEWAY_SERVICE_TOKEN.*`x-gateway-token`/,
  ],
  [
    "the worker has GATEWAY_HTTP_URL and GATEWAY_SERVICE_TOKEN: another address",
    executionOutcomes.GATEWAY_UNAVAILABLE,
    /could not be reached/,
    /GATEWAY_HTTP_URL leads to its internal listener/,
  ],
  [
    "the worker has GATEWAY_HTTP_URL and GATEWAY_SERVICE_TOKEN: the public address",
    executionErrors.internal_listener_only,
    /not served here/,
    /gateway\.internal_url/,
  ],
  [
    "the agent token prefix contains the organization UUID",
    refused(401),
    /refused the agent token \(status 401\)/,
    /<organization id>\.<secret> with the id of your organization/,
  ],
  [
    "the agent has not been revoked",
    ended({ kind: "closed", code: executionCloseCodes.revoked, reason: "" }),
    /the agent was revoked/,
    /has not been revoked \(page Agents\)/,
  ],
];

describe("troubleshooting of executions", () => {
  it.for(lines)("EXEC-05 %s", ([, words, message, nextStep]) => {
    expect(words.message).toMatch(message);
    expect(words.nextStep).toMatch(nextStep);
  });

  it("EXEC-05 503 has one meaning", () => {
    const unavailable = Object.entries(executionErrors).filter(([, { status }]) => status === 503);
    // Pairing is not dispatching: no caller of the dispatch routes gets the other one.
    expect(unavailable.map(([code]) => code)).toEqual(["agent_gateway_missing", "no_agent_available"]);
  });
});
