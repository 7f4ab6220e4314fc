// The addresses by which browsers reach the gateway.

import { EXECUTION_PATHS } from "@holdfast/contracts/execution/frames";
import { TERMINAL_PATH } from "@holdfast/contracts/terminal/frames";
import { allowedHosts } from "@holdfast/service/hosts";
import type { Exposure } from "@holdfast/service/settings";
import { isLoopback } from "@holdfast/service/settings";

export type PublicPlace = Pick<Exposure, "bind" | "publicUrl" | "tlsCertFile"> & {
  gatewayUrl: string | undefined;
  /** For execution agents, with its path. */
  executionUrl: string | undefined;
};

export function terminalUrl(place: PublicPlace, port: number): string {
  return `${socketOrigin(place, port)}${TERMINAL_PATH}`;
}

/** Where execution agents connect. */
export function executionUrl(place: PublicPlace, port: number): string {
  return place.executionUrl ?? `${socketOrigin(place, port)}${EXECUTION_PATHS[0]}`;
}

function socketOrigin({ bind, publicUrl, tlsCertFile, gatewayUrl }: PublicPlace, port: number): string {
  const url = new URL(gatewayUrl ?? (isLoopback(bind) ? undefined : publicUrl) ?? `http://${hostOf(bind)}`);
  if (gatewayUrl === undefined) url.port = String(port);
  const secure = url.protocol === "https:" || (gatewayUrl === undefined && tlsCertFile !== undefined);
  return `${secure ? "wss" : "ws"}://${url.host}`;
}

export function publicHosts(place: PublicPlace): ReadonlySet<string> {
  const urls = [place.gatewayUrl, place.executionUrl].filter((url) => url !== undefined);
  return new Set([...allowedHosts(place), ...urls.map((url) => new URL(url).hostname)]);
}

function hostOf(bind: string): string {
  if (bind === "localhost") return "127.0.0.1";
  return bind.includes(":") ? `[${bind}]` : bind;
}
