// The addresses by which browsers reach the gateway.

import { TERMINAL_PATH } from "@holdfast/contracts/terminal/frames";
import { allowedHosts } from "@holdfast/service/hosts";
import type { Exposure } from "@holdfast/service/settings";
import { isLoopback } from "@holdfast/service/settings";

export type PublicPlace = Pick<Exposure, "bind" | "publicUrl" | "tlsCertFile"> & {
  gatewayUrl: string | undefined;
};

export function terminalUrl({ bind, publicUrl, tlsCertFile, gatewayUrl }: PublicPlace, port: number): string {
  const url = new URL(gatewayUrl ?? (isLoopback(bind) ? undefined : publicUrl) ?? `http://${hostOf(bind)}`);
  if (gatewayUrl === undefined) url.port = String(port);
  const secure = url.protocol === "https:" || (gatewayUrl === undefined && tlsCertFile !== undefined);
  return `${secure ? "wss" : "ws"}://${url.host}${TERMINAL_PATH}`;
}

export function publicHosts(place: PublicPlace): ReadonlySet<string> {
  const { gatewayUrl } = place;
  return new Set([...allowedHosts(place), ...(gatewayUrl ? [new URL(gatewayUrl).hostname] : [])]);
}

function hostOf(bind: string): string {
  if (bind === "localhost") return "127.0.0.1";
  return bind.includes(":") ? `[${bind}]` : bind;
}
