// How terminals look on this computer: remembered, the same in every tab.

export const themeChoices = ["page", "dark", "light", "contrast"] as const;
export type ThemeChoice = (typeof themeChoices)[number];
export type Look = { fontSize: number; theme: ThemeChoice; screenReader: boolean };

export const defaultLook: Look = { fontSize: 14, theme: "page", screenReader: false };
const smallest = 8;
const largest = 32;

const storedAs = "holdfast.terminal";

/** Whatever stands in storage, what comes out can be shown. */
export function lookFrom(text: string | null): Look {
  let given: Partial<Record<keyof Look, unknown>> = {};
  try {
    given = (JSON.parse(text ?? "{}") as typeof given | null) ?? {};
  } catch {
    // Not ours.
  }
  return {
    fontSize: typeof given.fontSize === "number" ? withinSizes(given.fontSize) : defaultLook.fontSize,
    theme: themeChoices.find((choice) => choice === given.theme) ?? defaultLook.theme,
    screenReader: given.screenReader === true,
  };
}

export function withinSizes(fontSize: number): number {
  return Math.min(largest, Math.max(smallest, Math.round(fontSize) || defaultLook.fontSize));
}

export function recallLook(): Look {
  try {
    return lookFrom(localStorage.getItem(storedAs));
  } catch {
    return defaultLook;
  }
}

export function rememberLook(look: Look): void {
  try {
    localStorage.setItem(storedAs, JSON.stringify(look));
  } catch {
    // Without storage the choice lasts until the page is left.
  }
}
