// The path of the public listener that clients of terminals connect to. The form of the token is checked before the
// upgrade; the token itself only after it, so that a refusal reaches the page as an error frame.

import type { IncomingMessage } from "node:http";
import { ApiError } from "@holdfast/contracts/errors";
import { claimTerminalToken, type TerminalGrant } from "@holdfast/contracts/internal/endpoints";
import type { TerminalFailureCode } from "@holdfast/contracts/reasons/terminal";
import { secretPrefix } from "@holdfast/contracts/secrets";
import {
  isWriter,
  TERMINAL_PATH,
  TERMINAL_PROTOCOL,
  TOKEN_PROTOCOL,
  WRITER_PROTOCOL,
} from "@holdfast/contracts/terminal/frames";
import type { Log } from "@holdfast/service/log";
import type { ApiLink } from "../api-link/link.ts";
import type { Outbox } from "../api-link/outbox.ts";
import type { PublicRoute } from "../listeners/public-listener.ts";
import { failedNow, failureOf, isTransient } from "./api-answers.ts";
import { type Client, clientOf } from "./client.ts";
import type { Sessions } from "./sessions.ts";

type Offer = { token: string; writer: string | undefined };
type Claim = { token: string; correlationId: string };

const tokenForm = new RegExp(`^${secretPrefix.terminal}[A-Za-z0-9_-]{20,128}$`);

export function terminalPublicRoute(options: {
  api: Pick<ApiLink, "ask" | "instanceId">;
  /** False until the gateway has reached the api for the first time. */
  isApiKnown(): boolean;
  sessions: Pick<Sessions, "join">;
  outbox: Pick<Outbox, "reportUnclaimed">;
  onFailure(code: TerminalFailureCode): void;
  log: Log;
}): PublicRoute {
  const { api, sessions, outbox, log } = options;

  /** The api has recorded its own refusals; those without a response are reported once it responds. */
  const refuse = (client: Client, { token, correlationId }: Claim, error: unknown) => {
    const { code, detail, correlationId: recorded } = failureOf(error, "terminal_token_unverified");
    const id = recorded ?? correlationId;
    options.onFailure(code);
    log.info({ correlation_id: id, code, detail }, "did not admit a client");
    client.fail(code, { detail, correlationId: id });
    if (!(error instanceof ApiError) || isTransient(error))
      outbox.reportUnclaimed(token, { ...failedNow(code, detail, id), ended: false });
  };

  const claim = async ({ token, correlationId }: Claim): Promise<TerminalGrant> => {
    if (!options.isApiKnown()) throw new Error("the gateway has not reached the api yet");
    return api.ask(claimTerminalToken, { body: { token, gateway_id: api.instanceId }, correlationId });
  };

  return {
    path: TERMINAL_PATH,
    protocol: TERMINAL_PROTOCOL,
    admit(request, correlationId) {
      const { token, writer } = offerOf(request);
      return async (socket) => {
        const client = clientOf(socket, writer);
        const offered = { token, correlationId };
        const grant = await claim(offered).catch((error: unknown) => refuse(client, offered, error));
        if (!grant) return;
        await sessions.join(client, grant).catch((error: unknown) => {
          log.error({ err: error, correlation_id: correlationId }, "could not attach a client to its terminal");
          refuse(client, offered, error);
        });
      };
    },
  };
}

function offerOf(request: IncomingMessage): Offer {
  const offered = (request.headers["sec-websocket-protocol"] ?? "").split(",").map((one) => one.trim());
  const tokens = offered.filter((one) => one.startsWith(TOKEN_PROTOCOL));
  if (!offered.includes(TERMINAL_PROTOCOL)) {
    throw problem(`must offer ${TERMINAL_PROTOCOL} and ${TOKEN_PROTOCOL}<token>`);
  }
  const [token, ...more] = tokens.map((one) => one.slice(TOKEN_PROTOCOL.length));
  if (token === undefined) {
    throw new ApiError("unauthenticated", {
      message: "The connection offers no terminal token.",
      nextStep:
        "Ask for one with POST /v1/allocations/{allocation_id}/terminal-tokens, and offer it as a subprotocol.",
    });
  }
  if (more.length > 0 || !tokenForm.test(token)) throw problem("must hold one whole terminal token");
  const writer = offered.find((one) => one.startsWith(WRITER_PROTOCOL))?.slice(WRITER_PROTOCOL.length);
  if (writer !== undefined && !isWriter(writer)) throw problem("must name a writer by 32 hexadecimal digits");
  return { token, writer };
}

function problem(text: string): ApiError {
  return new ApiError("invalid_request", {
    details: { fields: [{ field: "headers.sec-websocket-protocol", problem: text }] },
  });
}
