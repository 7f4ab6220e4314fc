// What a preflight is asked to try, read from standard input: whoever asks over SSH runs one fixed command, so that nothing
// of it passes through a shell.

import type { HostPreflightRequest } from "@holdfast/contracts/preflight/host-report";
import { UsageError } from "@holdfast/kit/settings";

export type PreflightRequest = HostPreflightRequest;

const urls = ["node_runtime_api_url", "node_terminal_url"] as const;
const addresses = ["node_runtime_resolve_address", "node_terminal_resolve_address"] as const;
const MOST_HOLD_SECONDS = 25;

export function readPreflightRequest(json: string): PreflightRequest {
  let given: unknown;
  try {
    given = JSON.parse(json);
  } catch {
    throw new UsageError("The request on standard input is not JSON.");
  }
  return checkedRequest(given);
}

export function checkedRequest(given: unknown): PreflightRequest {
  if (typeof given !== "object" || given === null) throw new UsageError("The request is not a JSON object.");
  const request = given as Record<string, unknown>;
  const other = (request["other"] ?? {}) as Record<string, unknown>;
  const hold = request["hold_seconds"];
  return {
    ...picked(request, urls, isHttps, "an address of https"),
    ...picked(request, addresses, isText, "an IP address"),
    ...(Number.isInteger(hold) ? { hold_seconds: Math.min(Math.max(0, hold as number), MOST_HOLD_SECONDS) } : {}),
    other: picked(other, ["node_api", "node_terminal"] as const, isHttps, "an address of https"),
  };
}

function picked<Name extends string>(
  from: Record<string, unknown>,
  names: readonly Name[],
  isValid: (value: string) => boolean,
  what: string,
): Partial<Record<Name, string>> {
  const entries = names.flatMap((name) => {
    const value = from[name];
    if (value === undefined) return [];
    if (typeof value !== "string" || !isValid(value)) throw new UsageError(`${name} must be ${what}.`);
    return [[name, value] as const];
  });
  return Object.fromEntries(entries) as Partial<Record<Name, string>>;
}

const isHttps = (value: string) => /^(https|wss):$/.test(URL.parse(value)?.protocol ?? "");
const isText = (value: string) => value.length > 0 && value.length <= 64;
