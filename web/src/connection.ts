// Whether the api is reachable, from the outcome of every call. While it is not, it is polled until it
// responds, and then subscribers reload.

import { useSyncExternalStore } from "react";
import { hearServerTime } from "./clock.ts";

type Reach = "reached" | "unreachable";

const probeEveryMs = 3_000;
let reach: Reach = "reached";
const listeners = new Set<(reach: Reach) => void>();

export function onReachChange(listener: (reach: Reach) => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export function useReach(): Reach {
  return useSyncExternalStore(onReachChange, () => reach);
}

/** Resolves when the server is reachable again; immediately if it is reachable now. */
export async function untilReached(): Promise<void> {
  await watchedFetch("/v1/me", { cache: "no-store" }).catch(() => undefined);
  if (reach === "reached") return;
  await new Promise<void>((resolve) => {
    const stop = onReachChange((next) => {
      if (next === "unreachable") return;
      stop();
      resolve();
    });
  });
}

/** `fetch`, recording whether there was a response. */
export const watchedFetch: typeof fetch = async (input, init) => {
  try {
    const response = await fetch(input, init);
    hearServerTime(response);
    // A proxy returns these when it cannot reach the api.
    setReach(response.status === 502 || response.status === 504 ? "unreachable" : "reached");
    return response;
  } catch (error) {
    if (!(error instanceof DOMException && error.name === "AbortError")) setReach("unreachable");
    throw error;
  }
};

function setReach(next: Reach): void {
  if (next === reach) return;
  reach = next;
  for (const listener of listeners) listener(next);
  if (next === "unreachable") setTimeout(probe, probeEveryMs);
}

/** The browser reports a lost network, and its return, without waiting for a request to fail. */
export function followNetwork(browser: EventTarget): void {
  const look = () => void watchedFetch("/v1/me", { cache: "no-store" }).catch(() => undefined);
  for (const change of ["offline", "online"]) browser.addEventListener(change, look);
}

async function probe(): Promise<void> {
  await watchedFetch("/v1/me", { cache: "no-store" }).catch(() => undefined);
  if (reach === "unreachable") setTimeout(probe, probeEveryMs);
}
