// Carries out what the state table says about a terminal: frames to its client and its node, reports to the api.

import { WINDOW_BYTES } from "@holdfast/contracts/terminal/frames";
import { exhaustive } from "@holdfast/kit/exhaustive";
import { MOST_CODE_CHARACTERS, MOST_DETAIL_CHARACTERS } from "./sanitize.ts";
import { defaultSize, detachClient, isoNow, namesOf, type SessionData, sendToNode } from "./session-data.ts";
import type { Effect, Why } from "./states.ts";

const closeCodes = { done: 1000, restart: 1012 };

type EffectOf<Kind extends Effect["do"]> = Extract<Effect, { do: Kind }>;

export function perform(data: SessionData, effect: Effect) {
  const { attached, options } = data;
  switch (effect.do) {
    case "end_older_client":
      return endOlderClient(data);
    case "send_reached_steps":
      if (attached) data.chain.sendReached(attached, effect);
      return;
    case "step":
      // The api recorded this one itself, when it created the task.
      if (effect.step !== "terminal_open_sent") options.report({ type: "step", step: effect.step, at: isoNow() });
      return data.chain.reach(effect.step, attached);
    case "attach":
      return attach(data);
    case "ready":
      return sendReady(data);
    case "inform_client":
      if (attached?.ready && data.nodeAway) {
        attached.awaitsNode = true;
        attached.client.send({ type: "unresponsive", ...data.nodeAway });
      }
      return;
    case "detach":
      data.flowing = false;
      return sendToNode(data, { type: "detach" });
    case "end_client":
      return endClient(data, effect);
    case "exit_client":
      attached?.client.send({ type: "exit", ...effect.exit });
      return attached?.client.end();
    case "end_stream":
      if (effect.shell === "ends") sendToNode(data, { type: "close", reason: effect.reason });
      data.stream?.socket.close(effect.reason === "restart" ? closeCodes.restart : closeCodes.done, effect.reason);
      return;
    case "report_detached":
      if (attached?.ready) options.report({ type: "detached", at: isoNow() });
      return detachClient(data);
    case "report_failed":
      return options.report({ type: "failed", ...failureNow(data, effect.why), ended: effect.ended });
    case "report_closed":
      return reportClosed(data, effect);
    default:
      return exhaustive(effect);
  }
}

/** With the correlation id that the client received. */
function failureNow(
  { attached, options }: SessionData,
  { code, detail }: Why,
  of = attached?.grant ?? options.grant,
) {
  return {
    at: isoNow(),
    code: code.slice(0, MOST_CODE_CHARACTERS),
    detail: detail?.slice(0, MOST_DETAIL_CHARACTERS) ?? null,
    correlation_id: of.correlation_id,
  };
}

/** While the terminal opens, its outcome is reported for the newer client. */
function endOlderClient(data: SessionData): void {
  const { older, options } = data;
  if (!older) return;
  data.older = undefined;
  const why = { code: "terminal_taken_over", detail: null } as const;
  older.client.fail(why.code, { detail: null, correlationId: older.grant.correlation_id });
  if (data.state.at !== "opening")
    options.report({ type: "failed", ...failureNow(data, why, older.grant), ended: false });
}

function endClient(data: SessionData, { code, detail }: EffectOf<"end_client">): void {
  const { attached, options } = data;
  options.onFailure(code);
  options.log.info({ ...namesOf(data), code, detail }, "ended a terminal's client");
  attached?.client.fail(code, { detail, correlationId: attached.grant.correlation_id });
}

function reportClosed(data: SessionData, { why, exit }: EffectOf<"report_closed">): void {
  const { code: reason, ...rest } = failureNow(data, why);
  data.options.log.info({ ...namesOf(data), reason }, "terminal closed");
  const sizes = { bytes_in: data.bytes.to_node, bytes_out: data.bytes.to_client };
  data.options.report({ type: "closed", reason, ...rest, exit, ...sizes });
}

function attach(data: SessionData): void {
  const { attached } = data;
  if (!attached) return;
  const { client, grant, input, start, sent } = attached;
  data.attachment += 1;
  data.flowing = false;
  const from = attached.ready ? start + sent : grant.offset;
  const size = client.size ?? defaultSize;
  sendToNode(data, { type: "attach", attachment: data.attachment, from, ...input.attaching(), ...size });
}

function sendReady(data: SessionData): void {
  const { attached, answer, options } = data;
  if (!attached || !answer) return;
  const { offset, replay } = answer;
  const isFirst = !attached.ready;
  const place = attached.input.attached(data.attachment, answer.input);
  data.flowing = true;
  data.lastActiveAt = performance.now();
  if (!isFirst && offset === attached.start + attached.sent) {
    // The stream broke and came back without a gap: only input has to start again.
    attached.before = attached.sent;
    if (place.input) attached.client.send({ type: "input", ...place.input });
    if (attached.awaitsNode) attached.client.send({ type: "responsive" });
    attached.awaitsNode = false;
    return;
  }
  Object.assign(attached, { ready: true, start: offset, sent: 0, before: 0, awaitsNode: false });
  const output = { offset, window: WINDOW_BYTES, replay };
  attached.client.send({ type: "ready", session_id: options.grant.session_id, ...output, ...place });
  if (isFirst) options.report({ type: "attached", at: isoNow(), user_key: attached.grant.user_key });
}
