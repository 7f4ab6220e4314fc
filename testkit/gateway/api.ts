// The api's internal listener as a gateway sees it, with a CA and certificates that are real and answers
// that the test decides.

import { once } from "node:events";
import type { IncomingMessage, ServerResponse } from "node:http";
import { createServer, type Server } from "node:https";
import type { AddressInfo } from "node:net";
import type { Duplex } from "node:stream";
import { json } from "node:stream/consumers";
import type { TLSSocket } from "node:tls";
import type { AnswerOf, BodyInputOf, BodyOf } from "@holdfast/contracts/endpoint";
import { ApiError, type ErrorCode } from "@holdfast/contracts/errors";
import type {
  announceGateway,
  awaitTerminalTask,
  enrollService,
  openTerminal,
  reportUnclaimedToken,
  ServiceNews,
  TerminalEvent,
  TerminalGrant,
} from "@holdfast/contracts/internal/endpoints";
import { uuidv7 } from "@holdfast/kit/uuid";
import { proofOfAnswer } from "@holdfast/service/service-proof";
import { type Authority, temporaryAuthority } from "../../control-plane/src/identity/authority.ts";
import { enroll } from "../../control-plane/src/internal-api/enroll.ts";
import { atEnd } from "../lifetime/at-end.ts";
import { type ExecutionModel, executionModel } from "./executions.ts";

export const SERVICE_TOKEN = `hfv_${"g".repeat(43)}`;
export const ORIGIN = "http://127.0.0.1:3001";
const ALIVE_MS = 2_000;

type Opening = BodyInputOf<typeof openTerminal> & { session_id: string; ended: Promise<void> };
type Awaiting = { session_id: string; task_id: string; ended: Promise<void> };
type Unclaimed = BodyInputOf<typeof reportUnclaimedToken>;

type Admission = { node_id: string; serial: string; session_id: string };

export type StandInApi = {
  url: string;
  authority: Authority;
  /** A token, and what it is good for. */
  grant(changes?: Partial<Omit<TerminalGrant, "limits">> & { limits?: Partial<TerminalGrant["limits"]> }): {
    token: string;
    grant: TerminalGrant;
  };
  /** What openTerminal answers; unless a test says otherwise, that the task is made. */
  onOpen: (opening: Opening) => Promise<AnswerOf<typeof openTerminal>>;
  /** Resolves when a gateway asks for this terminal to be opened. */
  whenOpened(sessionId: string): Promise<void>;
  /** What awaitTerminalTask answers; until then it is held. */
  onTask: (awaiting: Awaiting) => Promise<AnswerOf<typeof awaitTerminalTask>>;
  /** Reports of tokens whose claim was not answered. */
  unclaimed: Unclaimed[];
  /** What admitNodeStream answers; undefined: as the grants say. */
  onAdmit: ((request: Admission) => { code: ErrorCode; reason?: string } | undefined) | undefined;
  /** Waited for before admitNodeStream is answered. */
  beforeAdmit: (() => Promise<void>) | undefined;
  events(sessionId: string): TerminalEvent[];
  /** Agents that run steps, and their requests. */
  executions: ExecutionModel;
  publish(news: ServiceNews): void;
  announcements: BodyInputOf<typeof announceGateway>[];
  enrollments: number;
  /** Of service certificates, as far as gateways are told; undefined: as long as they are. */
  validityMs: number | undefined;
  /** The token by which it proves itself, when it states a validity. */
  provesWith: string;
  claims: number;
  /** Which gateway said that it has a terminal now. */
  takeovers: { session_id: string; gateway_id: string }[];
  following(): number;
  admissions: number;
  goAway(): Promise<void>;
  comeBack(): Promise<void>;
};

export async function startStandInApi(): Promise<StandInApi> {
  const now = new Date();
  const authority = temporaryAuthority(now);
  const tls = authority.issueToServer(["localhost", "127.0.0.1"], now);
  const grants = new Map<string, TerminalGrant>();
  const known = new Map<string, TerminalGrant>();
  const events = new Map<string, TerminalEvent[]>();
  const followers = new Set<ServerResponse>();
  const openings = new Map<string, () => void>();
  const sockets = new Set<Duplex>();
  let server: Server | undefined;
  let port = 0;

  const api: StandInApi = {
    url: "",
    authority,
    announcements: [],
    enrollments: 0,
    validityMs: undefined,
    provesWith: SERVICE_TOKEN,
    claims: 0,
    takeovers: [],
    admissions: 0,
    unclaimed: [],
    onOpen: async () => ({ sent: true, task_id: uuidv7() }),
    whenOpened: (sessionId) => new Promise((resolve) => void openings.set(sessionId, resolve)),
    onTask: () => new Promise(() => undefined),
    onAdmit: undefined,
    beforeAdmit: undefined,
    executions: executionModel((news) => api.publish(news)),
    following: () => followers.size,
    events: (sessionId) => events.get(sessionId) ?? [],
    publish(news) {
      for (const response of followers) response.write(`${JSON.stringify(news)}\n`);
    },
    grant({ limits, ...changes } = {}) {
      const grant: TerminalGrant = {
        session_id: uuidv7(),
        org_id: uuidv7(),
        allocation_id: uuidv7(),
        node_id: uuidv7(),
        user_key: "user:ada",
        correlation_id: `corr-${uuidv7()}`,
        purpose: "open",
        offset: null,
        asked_at: new Date().toISOString(),
        deadline_seconds: 15,
        elsewhere: { of_user: 0, on_node: 0 },
        ...changes,
        limits: {
          idle_seconds: 3600,
          detached_seconds: 600,
          longest_seconds: 86_400,
          per_user: 1000,
          per_node: 1000,
          ...limits,
        },
      };
      const token = `hfp_${uuidv7().replaceAll("-", "")}`;
      grants.set(token, grant);
      known.set(grant.session_id, grant);
      return { token, grant };
    },
    async goAway() {
      const closed = new Promise((resolve) => server?.close(resolve));
      // Also those that are in the middle of TLS, which the server does not count among its own yet.
      for (const socket of sockets) socket.destroy();
      await closed;
    },
    comeBack: () => listen(),
  };

  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<unknown> => {
    const [, , , noun, id, verb] = (request.url ?? "").split("/");
    if (noun === "services") {
      api.enrollments += 1;
      const body = (await json(request)) as BodyOf<typeof enrollService>;
      const { mac, ...identity } = await enroll(body, { token: SERVICE_TOKEN, authority, now: Date.now() });
      if (api.validityMs !== undefined) identity.not_after = new Date(Date.now() + api.validityMs).toISOString();
      return {
        ...identity,
        mac: api.validityMs === undefined ? mac : proofOfAnswer(api.provesWith, body.nonce, identity),
      };
    }
    const leaf = (request.socket as TLSSocket).getPeerX509Certificate();
    if (!leaf || !authority.hasIssued(leaf)) throw new ApiError("service_identity_refused");
    if (noun === "news") return follow(response);
    const body = (await json(request)) as Record<string, unknown>;
    const execution = await api.executions.answer(request.url ?? "", body);
    if (execution?.lost) {
      request.socket.destroy();
      throw new Streaming();
    }
    if (execution) return execution.value;
    if (noun === "gateways") {
      api.announcements.push(body as never);
      return { origins: [ORIGIN], ticket_keys: Buffer.alloc(48, 5).toString("base64"), ingress_mark: null };
    }
    if (noun === "terminal-tokens" && id === "unclaimed") {
      api.unclaimed.push(body as Unclaimed);
      return undefined;
    }
    if (noun === "terminal-tokens") {
      api.claims += 1;
      const grant = grants.get(String(body["token"]));
      if (!grant) throw new ApiError("terminal_token_refused");
      grants.delete(String(body["token"]));
      return grant;
    }
    const session_id = id ?? "";
    const ended = once(response, "close").then(() => undefined);
    if (verb === "open") openings.get(session_id)?.();
    if (verb === "open") return api.onOpen({ ...(body as never as Opening), session_id, ended });
    if (verb === "task") return api.onTask({ ...(body as never as Awaiting), session_id, ended });
    if (verb === "gateway") {
      api.takeovers.push({ session_id, gateway_id: String(body["gateway_id"]) });
      return undefined;
    }
    if (verb === "events") {
      events.set(session_id, [...api.events(session_id), ...(body["events"] as TerminalEvent[])]);
      return undefined;
    }
    api.admissions += 1;
    await api.beforeAdmit?.();
    const refused = api.onAdmit?.({ ...(body as { node_id: string; serial: string }), session_id });
    if (refused) throw new ApiError(refused.code, { details: refused.reason ? { reason: refused.reason } : {} });
    const grant = known.get(session_id);
    if (!grant) throw new ApiError("terminal_session_unknown");
    return { grant };
  };

  const follow = (response: ServerResponse): never => {
    response.writeHead(200, { "content-type": "application/x-ndjson" });
    const alive = () => response.write(`${JSON.stringify({ type: "alive", at: new Date().toISOString() })}\n`);
    alive();
    // A gateway leaves a line that says nothing, and hears no news until it has a new one.
    const saying = setInterval(alive, ALIVE_MS).unref();
    followers.add(response);
    response.once("close", () => {
      clearInterval(saying);
      followers.delete(response);
    });
    throw new Streaming();
  };

  const listen = async () => {
    const opened = createServer(
      {
        cert: tls.cert,
        key: tls.key,
        ca: [...authority.certificates],
        requestCert: true,
        rejectUnauthorized: false,
      },
      (request, response) => {
        answer(request, response).then(
          (body) => {
            response.statusCode = body === undefined ? 204 : 200;
            response.end(body === undefined ? undefined : JSON.stringify(body));
          },
          (error: unknown) => {
            if (error instanceof Streaming) return;
            const known = error instanceof ApiError ? error : new ApiError("internal_error");
            response.statusCode = known.status;
            response.end(JSON.stringify(known.envelope("stand-in")));
          },
        );
      },
    );
    opened.on("connection", (socket) => {
      sockets.add(socket);
      socket.once("close", () => sockets.delete(socket));
    });
    opened.listen(port, "127.0.0.1");
    await once(opened, "listening");
    port = (opened.address() as AddressInfo).port;
    server = opened;
    api.url = `https://127.0.0.1:${port}`;
  };
  await listen();
  atEnd(() => api.goAway());
  return api;
}

class Streaming extends Error {}
