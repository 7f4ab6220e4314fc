// Light, dark, or as the system says. public/boot.js applies the choice before the first paint.

import { useSyncExternalStore } from "react";

export type Theme = "system" | "light" | "dark";

const storedAs = "holdfast.theme";
const systemDark = matchMedia("(prefers-color-scheme: dark)");
const listeners = new Set<() => void>();

let theme: Theme = readTheme();

function readTheme(): Theme {
  try {
    const stored = localStorage.getItem(storedAs);
    return stored === "light" || stored === "dark" ? stored : "system";
  } catch {
    return "system";
  }
}

function apply(): void {
  const dark = theme === "system" ? systemDark.matches : theme === "dark";
  document.documentElement.dataset["theme"] = dark ? "dark" : "light";
}

systemDark.addEventListener("change", apply);

export function chooseTheme(next: Theme): void {
  theme = next;
  try {
    if (next === "system") localStorage.removeItem(storedAs);
    else localStorage.setItem(storedAs, next);
  } catch {
    // Without storage the choice lasts until the page is left.
  }
  apply();
  for (const listener of listeners) listener();
}

export function useTheme(): Theme {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => theme,
  );
}

/** What the choice comes to at the moment. */
export function useIsDark(): boolean {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      systemDark.addEventListener("change", listener);
      return () => {
        listeners.delete(listener);
        systemDark.removeEventListener("change", listener);
      };
    },
    () => (theme === "system" ? systemDark.matches : theme === "dark"),
  );
}
