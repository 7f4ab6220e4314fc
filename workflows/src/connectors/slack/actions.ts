// What the actions of the connector slack send. The Web API says with status 200 what went wrong.

import type { ConnectorFailureCode } from "@holdfast/contracts/execution/connector-failures";
import { ConnectorFailure, httpActions } from "../actions.ts";
import { bearer } from "../authorization.ts";
import { jsonOf } from "../json-answer.ts";
import type contract from "./contract.ts";

const json = { "content-type": "application/json; charset=utf-8" };

export default httpActions<typeof contract>({
  "message.post": {
    message({ channel, text, blocks, threadTs, baseUrl = "https://slack.com/api" }, { secret }) {
      return {
        ...{ kind: "http", method: "POST", url: `${baseUrl.replace(/\/+$/, "")}/chat.postMessage` },
        headers: { ...json, ...bearer(secret) },
        body: JSON.stringify({ channel, text, blocks, thread_ts: threadTs }),
      };
    },
    read(answer) {
      const { ok, error, channel, ts } = jsonOf(answer);
      if (ok !== true) throw refusalOf(error);
      return { channel: String(channel), ts: String(ts) };
    },
  },
  "webhook.post": {
    message: ({ text, blocks }, { secret }) => ({
      ...{ kind: "http", method: "POST", url: secret ?? "", headers: json },
      body: JSON.stringify({ text, blocks }),
    }),
    read(answer) {
      if (answer.body !== "ok") throw new ConnectorFailure("response_invalid", undefined, { outcomeKnown: false });
      return { posted: true as const };
    },
  },
});

const codes: Record<string, ConnectorFailureCode> = {
  ...{ invalid_auth: "secret_refused", not_authed: "secret_refused", account_inactive: "secret_refused" },
  ...{ token_revoked: "secret_refused", token_expired: "secret_refused", missing_scope: "secret_refused" },
  ...{
    channel_not_found: "target_not_found",
    not_in_channel: "target_not_found",
    thread_not_found: "target_not_found",
  },
  ...{ ratelimited: "rate_limited", rate_limited: "rate_limited" },
};

function refusalOf(error: unknown): ConnectorFailure {
  const said = typeof error === "string" && /^[a-z_]{1,60}$/.test(error) ? error : "unknown";
  // These two say that something broke on the way, and not that nothing happened.
  const broken = said === "internal_error" || said === "fatal_error";
  const code = broken ? "service_failed" : Object.hasOwn(codes, said) ? codes[said] : undefined;
  return new ConnectorFailure(code ?? "request_refused", `Slack says ${said}.`, { outcomeKnown: !broken });
}
