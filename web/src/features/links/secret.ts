// The secret of a one-time link is in the URL's fragment, which browsers do not send. It is removed
// from the address bar and the history immediately, and kept only in this variable.

import { secretPrefix } from "@holdfast/contracts/secrets";
import { useSyncExternalStore } from "react";

let secret: string | null = null;
const listeners = new Set<() => void>();

/** `#hfl_…` → `hfl_…`; null for anything else. */
export function linkSecretOf(hash: string): string | null {
  const text = hash.replace(/^#/, "").trim();
  return text.startsWith(secretPrefix.link) ? text : null;
}

/** Called before the router starts, and again when another link is pasted into the same tab. */
export function takeLinkSecret(): void {
  if (window.location.pathname !== "/link") return;
  const found = linkSecretOf(window.location.hash);
  if (!found) return;
  secret = found;
  window.history.replaceState(window.history.state, "", "/link");
  for (const listener of listeners) listener();
}

function subscribe(listener: () => void) {
  listeners.add(listener);
  window.addEventListener("hashchange", takeLinkSecret);
  return () => {
    listeners.delete(listener);
    window.removeEventListener("hashchange", takeLinkSecret);
  };
}

export function useLinkSecret(): string | null {
  return useSyncExternalStore(subscribe, () => secret);
}
