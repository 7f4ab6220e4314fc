// Exchanges a pairing token for the credentials of an agent. One request: a pairing token works once, so a response that was
// lost needs a new token.

import type { IncomingMessage } from "node:http";
import https from "node:https";
import type { SecureContext } from "node:tls";
import { executionErrors } from "@holdfast/contracts/errors/execution";
import type { AgentCapabilities } from "@holdfast/contracts/execution/frames";
import { http } from "../http-module.ts";
import { Paired } from "./credentials.generated.ts";
import type { Credentials } from "./credentials.ts";
import { digestOfPairingToken } from "./credentials.ts";

export type PairingRequest = {
  apiBaseUrl: string;
  pairingToken: string;
  name: string;
  agentVersion: string;
  capabilities: AgentCapabilities;
  secureContext?: SecureContext | undefined;
};

/** `unreachable`: nothing was decided, and the token may still be good. */
export class PairingFailure extends Error {
  override name = "PairingFailure";
  readonly kind: "unreachable" | "refused";
  readonly code: string;
  readonly nextStep: string;

  constructor(kind: PairingFailure["kind"], about: { code: string; message: string; nextStep: string }) {
    super(about.message);
    this.kind = kind;
    this.code = about.code;
    this.nextStep = about.nextStep;
  }
}

const TIMEOUT_MS = 30_000;
const MOST_RESPONSE_CHARACTERS = 1024 * 1024;
const CHECK_ADDRESS = "Check --api-base: it is the URL of the API, such as http://localhost:3001.";

export async function pair(request: PairingRequest): Promise<Credentials> {
  const { apiBaseUrl, pairingToken, name, agentVersion, capabilities } = request;
  const url = new URL("/v1/agents/pair", apiBaseUrl);
  const { status, text } = await post(url, request, { pairingToken, name, agentVersion, capabilities });
  const body = parse(text);
  if (status !== 201 && status !== 200) throw refusal(url, status, body);
  const checked = Paired.safeParse(body);
  if (!checked.success) {
    throw new PairingFailure("refused", {
      code: "PAIRING_RESPONSE_INVALID",
      message: `The response of ${url.origin} is not one to a pairing: ${checked.error.message}.`,
      nextStep: CHECK_ADDRESS,
    });
  }
  const { keySet, ...issued } = checked.data;
  return {
    ...issued,
    apiBaseUrl,
    ...{ name, agentVersion, capabilities },
    ...(keySet ? { keySet: { version: keySet.version, keys: keySet.content.keys } } : {}),
    pairedWith: digestOfPairingToken(pairingToken),
  };
}

function post(
  url: URL,
  { secureContext }: PairingRequest,
  body: object,
): Promise<{ status: number; text: string }> {
  const content = JSON.stringify(body);
  return new Promise((resolve, reject) => {
    const fail = (why: string) =>
      reject(
        new PairingFailure("unreachable", {
          code: "unreachable",
          message: `${url.origin} cannot be reached: ${why}.`,
          nextStep: `${CHECK_ADDRESS} The pairing token was not used, unless the response was lost.`,
        }),
      );
    const options = {
      method: "POST",
      headers: { "content-type": "application/json", "content-length": Buffer.byteLength(content) },
      signal: AbortSignal.timeout(TIMEOUT_MS),
      // No pool: connections with other CAs would be shared.
      agent: false as const,
    };
    const onResponse = async (response: IncomingMessage) => {
      let text = "";
      try {
        for await (const part of response.setEncoding("utf8")) {
          text += part;
          if (text.length > MOST_RESPONSE_CHARACTERS) throw new Error("the response is too long");
        }
        resolve({ status: response.statusCode ?? 0, text });
      } catch (error) {
        response.destroy();
        fail((error as Error).message);
      }
    };
    const asked =
      url.protocol === "https:"
        ? https.request(
            url,
            { ...options, ...(secureContext ? { secureContext } : {}) } as https.RequestOptions,
            onResponse,
          )
        : http.request(url, options, onResponse);
    asked.once("error", (error: Error) =>
      fail(error.name === "TimeoutError" ? `no response within ${TIMEOUT_MS / 1000} s` : error.message),
    );
    asked.end(content);
  });
}

/** With the words of the server where it has some: other systems send only a code. */
function refusal(url: URL, status: number, body: unknown): PairingFailure {
  const { code, message, next_step } = (body ?? {}) as Record<string, unknown>;
  const known = typeof code === "string" ? code : undefined;
  const ours = known === undefined ? undefined : entryOf(known);
  return new PairingFailure("refused", {
    code: known ?? "PAIRING_FAILED",
    message:
      ours?.message ??
      `${url.origin} refused the pairing with status ${status}${typeof message === "string" ? `: ${message}` : "."}`,
    // What serves no pairing is another server, whose next step is about itself.
    nextStep: typeof next_step === "string" && status !== 404 ? next_step : (ours?.nextStep ?? CHECK_ADDRESS),
  });
}

function entryOf(code: string): { message: string; nextStep: string } | undefined {
  const name = code.toLowerCase();
  return name === "pairing_token_invalid" || name === "pairing_token_expired" ? executionErrors[name] : undefined;
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
