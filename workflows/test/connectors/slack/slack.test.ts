// The stand-in follows Slack's documentation: chat.postMessage answers 200 with `ok`, an incoming webhook the text ok.

import { describe, expect, it } from "vitest";
import { type Got, parsed, type Reply, standIn } from "../server.ts";
import { connectorSuite, run, SECRET, type Service, statusSuite } from "../suite.ts";

function slack({ method, path, headers, body }: Got): Reply {
  const sent = parsed(body);
  const isJson = /^application\/json/.test(String(headers["content-type"]));
  if (path === "/api/chat.postMessage") {
    const refused = (error: string) => ({ status: 200, body: { ok: false, error } });
    if (method !== "POST" || !isJson) return refused("invalid_form_data");
    if (headers.authorization !== `Bearer ${SECRET}`) return refused("invalid_auth");
    if (sent["channel"] !== "#ops") return refused("channel_not_found");
    if (!sent["text"] && !sent["blocks"]) return refused("no_text");
    return { status: 200, body: { ok: true, channel: "C024BE91L", ts: "1700000000.000100", message: sent } };
  }
  if (path.startsWith("/services/"))
    return sent["text"] ? { status: 200, body: "ok" } : { status: 400, body: "no_text" };
  return { status: 404, body: "no_service" };
}

const opened = (webhook: boolean) => async (): Promise<Service> => {
  const server = await standIn(slack);
  return {
    arrived: () => server.got.length,
    transcript: () => JSON.stringify(server.got),
    next: server.next,
    input: webhook ? {} : { baseUrl: `${server.url}/api` },
    secret: webhook ? `${server.url}/services/T024BE7LH/B024BE7LH/8Zq1xWvv7needle` : SECRET,
  };
};

const post = { channel: "#ops", text: "Deployed." };
connectorSuite("slack", opened(false), {
  "message.post": { input: post, output: { channel: "C024BE91L", ts: "1700000000.000100" }, lineField: "channel" },
});
connectorSuite("slack", opened(true), {
  "webhook.post": { input: { text: "Deployed." }, output: { posted: true } },
});
statusSuite("slack", opened(false), { action: "message.post", input: post });

describe("the connector slack", () => {
  it.for([
    ["invalid_auth", "secret_refused", true],
    ["missing_scope", "secret_refused", true],
    ["channel_not_found", "target_not_found", true],
    ["ratelimited", "rate_limited", true],
    ["msg_too_long", "request_refused", true],
    ["internal_error", "service_failed", false],
    ["<b>", "request_refused", true],
  ] as const)("FLOW-04 %s is %s", async ([error, code, outcomeKnown]) => {
    const service = await opened(false)();
    service.next?.({ status: 200, body: { ok: false, error } });
    const outcome = await run({
      connector: "slack",
      action: "message.post",
      secret: SECRET,
      input: { ...post, ...service.input },
    });
    expect(outcome).toMatchObject({ failure: { code }, outcomeKnown });
    expect(JSON.stringify(outcome)).not.toContain("<b>");
  });
});
