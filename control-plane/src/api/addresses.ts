// The URLs of this process's public listener.

import type { Values } from "@holdfast/kit/settings";
import { allowedHosts } from "@holdfast/service/hosts";
import { listenerUrl } from "@holdfast/service/node-identity/names";
import type { apiSettings } from "./settings.ts";

/** The URL for clients on this machine. */
export function ownUrl(settings: Values<typeof apiSettings>, port: number): string {
  const url = new URL(listenerUrl({ bind: settings.bind, url: undefined }, port));
  if (settings.tlsCertFile === undefined) url.protocol = "http:";
  return url.origin;
}

/** The origins of the pages that this api serves, one for each of its names. */
export function originsOf(settings: Values<typeof apiSettings>, port: number): string[] {
  const scheme = settings.tlsCertFile === undefined ? "http" : "https";
  const own = [...allowedHosts(settings)].map((host) => new URL(`${scheme}://${host}:${port}`).origin);
  return [...new Set([...(settings.publicUrl ? [settings.publicUrl] : []), ...own])];
}
