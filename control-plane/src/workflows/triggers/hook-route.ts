// Requests to webhooks. An unknown id, one of a removed trigger and a wrong token get the same response. What is accepted starts one run
// for each delivery; the same delivery again returns that run.

import { MOST_HOOK_BYTES, receiveHook } from "@holdfast/contracts/endpoints/workflow-triggers";
import { ApiError } from "@holdfast/contracts/errors";
import { uuidForm } from "@holdfast/kit/uuid";
import type { FastifyInstance } from "fastify";
import type { ApiContext } from "../../api/context.ts";
import { type PublicCall, publicRoute } from "../../api/route.ts";
import { auditActor, recordAudit } from "../../audit/record.ts";
import { networkOf, takeAttempt } from "../../mechanisms/rate-limit.ts";
import { openSecret } from "../../secrets/envelope.ts";
import { selectUsable } from "../../secrets/queries.ts";
import { type Authenticated, deliveryOf, type HookRequest, hasToken, isSigned } from "./authenticate-hook.ts";
import { type LiveTrigger, requireRoom, startTriggered } from "./start.ts";

/** Of one webhook. */
const accepted = { attempts: 600, windowSeconds: 60 };
/** From one network, to all webhooks. */
const refused = { attempts: 60, windowSeconds: 15 * 60 };

type Hook = LiveTrigger & { enabled: boolean; secret: string | null; token_hash: Buffer | null };

/** In a scope of its own: here the body stays as it was sent, because it is what is signed. */
export async function hookRoutes(api: ApiContext): Promise<void> {
  await api.http.register(async (scope) => {
    scope.removeAllContentTypeParsers();
    scope.addContentTypeParser("*", { parseAs: "buffer" }, (_request, body, done) => done(null, body));
    const http = scope as unknown as FastifyInstance;
    publicRoute({ ...api, http }, receiveHook, (call) => receive(api, call));
  });
}

async function receive(api: ApiContext, call: PublicCall<typeof receiveHook>) {
  const { correlationId } = call;
  const request: HookRequest = {
    ...{ header: call.header, now: new Date() },
    body: Buffer.isBuffer(call.body) ? call.body : Buffer.alloc(0),
  };
  if (request.body.length > MOST_HOOK_BYTES) {
    throw new ApiError("body_too_large", { details: { limit_bytes: MOST_HOOK_BYTES } });
  }
  const hook = uuidForm.test(call.params.hook_id) ? await selectHook(api, call.params.hook_id) : undefined;
  const standing = hook ? await authenticate(api, hook, request) : "refused";
  if (!hook || standing !== "yes") return refuse(api, call, hook, standing);
  await takeAttempt(api.system, accepted, "hook", hook.id);
  if (!hook.enabled) throw new ApiError("trigger_disabled");
  const deliveryId = deliveryOf(request) ?? null;
  const run = await api.system.begin(async (tx) => {
    await requireRoom(tx, hook.id);
    const by = { id: hook.id, deliveryId };
    const input = inputOf(request, deliveryId);
    return startTriggered(tx, api.log, hook, { input, correlationId, queue: api.workflowQueue, by });
  });
  if (run !== undefined) {
    api.signals.publish("workflow_run", [run]);
    return { run_id: run, replayed: false };
  }
  const [known] = await api.system<{ id: string }[]>`
    SELECT id FROM workflow_runs WHERE trigger_id = ${hook.id} AND delivery_id = ${deliveryId}`;
  if (!known) throw new Error(`delivery ${deliveryId} of ${hook.id} started no run and is unknown`);
  return { run_id: known.id, replayed: true };
}

async function selectHook(api: ApiContext, id: string): Promise<Hook | undefined> {
  const [row] = await api.system<Hook[]>`
    SELECT t.id, t.org_id, t.workflow_id, w.name AS workflow_name, w.published_version, o.service_user_id, t.enabled, t.token_hash,
      t.definition->>'secret' AS secret
    FROM workflow_triggers t JOIN workflows w ON w.id = t.workflow_id JOIN organizations o ON o.id = t.org_id
    WHERE t.id = ${id} AND t.type = 'webhook' AND t.removed_at IS NULL AND w.published_version IS NOT NULL`;
  return row;
}

/** The signing secret is used as the service user, so members must be allowed to use it. It is compared with, and given to nobody. */
async function authenticate(api: ApiContext, hook: Hook, request: HookRequest): Promise<Authenticated> {
  if (hook.secret === null) return hasToken(request, hook.token_hash);
  const wanted = { orgId: hook.org_id, userId: hook.service_user_id, name: hook.secret, id: null };
  const stored = await selectUsable(api.system, wanted);
  return stored ? isSigned(request, openSecret(api.keks, stored, stored.sealed)) : "refused";
}

async function refuse(
  api: ApiContext,
  { address, correlationId }: PublicCall<typeof receiveHook>,
  hook: Hook | undefined,
  standing: Authenticated,
): Promise<never> {
  await takeAttempt(api.system, refused, "hook refused", networkOf(address));
  const reason = standing === "expired" ? "hook_signature_expired" : "hook_refused";
  if (hook) {
    await recordAudit(api.system, api.log, {
      ...{ orgId: hook.org_id, by: auditActor(undefined, "none"), action: "run.trigger", correlationId },
      ...{ result: "denied", reason },
      target: { type: "workflow", id: hook.workflow_id, name: hook.workflow_name },
      details: { trigger_id: hook.id, address: networkOf(address) },
    });
  }
  throw new ApiError(reason);
}

/** Others may contain credentials of the sender. */
const passedOn = [
  "content-type",
  "user-agent",
  "x-github-event",
  "x-gitlab-event",
  "x-event-key",
  "x-holdfast-event",
];

function inputOf({ header, body }: HookRequest, deliveryId: string | null): object {
  const headers = passedOn.flatMap((name): [string, string][] => {
    const value = header(name);
    return value === undefined ? [] : [[name, clean(value)]];
  });
  return { body: bodyOf(body), headers: Object.fromEntries(headers), delivery: deliveryId };
}

function bodyOf(body: Buffer): unknown {
  const text = clean(body.toString("utf8"));
  // Whatever walks a value goes as deep as it: nobody sends so much structure in earnest.
  if (nestingOf(text) > MOST_NESTING) return text;
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

const MOST_NESTING = 100;

/** How deep the value in a JSON text is. */
function nestingOf(text: string): number {
  let depth = 0;
  let most = 0;
  for (const [token] of text.matchAll(/"(?:[^"\\]|\\.)*"|[[\]{}]/g)) {
    if (token === "[" || token === "{") depth += 1;
    else if (token === "]" || token === "}") depth -= 1;
    most = Math.max(most, depth);
  }
  return most;
}

const clean = (text: string) => text.replaceAll("\0", "").toWellFormed();
