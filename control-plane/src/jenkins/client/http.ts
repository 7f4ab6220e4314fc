// Requests to one controller: basic authentication, crumbs for what changes something, failures as kinds. Names are resolved once,
// and only to addresses that are allowed (notify/send/addresses.ts); redirects are not followed, so that the API token goes nowhere else.

import { AddressRefused, type Allowance, parseWebhookUrl, resolveAllowed } from "../../notify/send/addresses.ts";
import { failureOf, shortened } from "../../notify/send/outcome.ts";
import { exchangeOutside, type OutsideResponse } from "../../notify/send/request.ts";
import { JenkinsFailure } from "./failure.ts";

export type ControllerAccess = { url: string; user: string; token: string };

export type ControllerHttp = {
  checkCrumb(): Promise<void>;
  /** Undefined: 404. */
  get(path: string): Promise<OutsideResponse | undefined>;
  /** With a crumb. 2xx and redirects are success; undefined: 404; 400 is returned. */
  post(path: string, form?: Record<string, string>): Promise<OutsideResponse | undefined>;
};

/** Of one request. */
const TIME_LIMIT_MS = 10_000;
const MOST_BYTES = 8 * 1024 * 1024;

type Crumb = { headers: Record<string, string> };

export async function connectController(
  { url: base, user, token }: ControllerAccess,
  { allowance, timeLimitMs = TIME_LIMIT_MS }: { allowance: Allowance; timeLimitMs?: number },
): Promise<ControllerHttp> {
  const addresses = await addressesOf(base, allowance);
  const authorization = `Basic ${Buffer.from(`${user}:${token}`).toString("base64")}`;
  let crumb: Crumb | undefined;

  const send = async (method: "GET" | "POST", path: string, headers: Record<string, string>, body?: string) => {
    const url = new URL(path, base);
    const request = {
      url,
      addresses,
      method,
      timeLimitMs,
      headers: { accept: "application/json", authorization, ...headers },
    };
    try {
      return await exchangeOutside(
        { ...request, ...(body === undefined ? {} : { body }) },
        { mostBytes: MOST_BYTES },
      );
    } catch (error) {
      throw new JenkinsFailure("unreachable", failureOf(error).answer);
    }
  };

  const getCrumb = async (): Promise<Crumb> => {
    const response = await send("GET", "crumbIssuer/api/json", {});
    // The controller is set up without protection against forged requests.
    if (response.status === 404) return { headers: {} };
    refuseFailed(response);
    const { crumb: value, crumbRequestField: field } = jsonOf(response) as Record<string, unknown>;
    if (typeof value !== "string" || typeof field !== "string" || !/^[\w.-]+$/.test(field))
      throw new JenkinsFailure("unexpected", "The crumb issuer's answer has no crumb.");
    // A crumb is valid in its session only.
    const cookie = (response.headers["set-cookie"] ?? []).map((one) => one.split(";", 1)[0]).join("; ");
    return { headers: { [field]: value, ...(cookie ? { cookie } : {}) } };
  };

  return {
    async checkCrumb() {
      crumb = await getCrumb();
    },
    async get(path) {
      const response = await send("GET", path, {});
      if (response.status === 404) return undefined;
      refuseFailed(response);
      return response;
    },
    async post(path, form) {
      const body = form === undefined ? "" : new URLSearchParams(form).toString();
      const once = async () => {
        crumb ??= await getCrumb();
        return send("POST", path, { "content-type": "application/x-www-form-urlencoded", ...crumb.headers }, body);
      };
      let response = await once();
      if (response.status === 403) {
        // The session of the crumb may have ended, with a restart of the controller for example.
        crumb = undefined;
        response = await once();
      }
      if (response.status === 404) return undefined;
      const isDone = response.status < 400 && !/\/login\b/.test(response.headers.location ?? "");
      if (!isDone && response.status !== 400) refuseFailed(response);
      return response;
    },
  };
}

async function addressesOf(base: string, allowance: Allowance): Promise<string[]> {
  try {
    return await resolveAllowed(parseWebhookUrl(base), allowance);
  } catch (error) {
    if (error instanceof AddressRefused) throw new JenkinsFailure("address_refused", error.message);
    throw new JenkinsFailure("unreachable", failureOf(error).answer);
  }
}

export function jsonOf({ body }: Pick<OutsideResponse, "body">): unknown {
  try {
    return JSON.parse(body);
  } catch {
    throw new JenkinsFailure("unexpected", "The answer is not JSON.");
  }
}

/** Throws unless the status is 2xx. */
function refuseFailed({ status, headers, body }: OutsideResponse): void {
  if (status >= 200 && status < 300) return;
  const text = shortened(body.replace(/<[^>]*>/g, " "));
  const detail = `${status}${text ? `: ${text}` : ""}`;
  if (status === 401) throw new JenkinsFailure("unauthorized", detail);
  if (status === 403) throw new JenkinsFailure("forbidden", detail);
  if (status === 429)
    throw new JenkinsFailure("throttled", detail, { retryAfterSeconds: retryAfter(headers["retry-after"]) });
  if (status >= 500)
    throw new JenkinsFailure("server_error", detail, { retryAfterSeconds: retryAfter(headers["retry-after"]) });
  // Of a login page, most often.
  if (status >= 300 && status < 400)
    throw new JenkinsFailure("unauthorized", `${status}: a redirect, which is not followed.`);
  throw new JenkinsFailure("unexpected", detail);
}

function retryAfter(value: string | undefined): number | undefined {
  const seconds = Number(value);
  return value !== undefined && Number.isFinite(seconds) && seconds >= 0 ? seconds : undefined;
}
