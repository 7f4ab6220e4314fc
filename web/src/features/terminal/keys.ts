// Keys that a telephone's keyboard does not have, as the bytes that programs expect.

export const barKeys = ["Esc", "Tab", "↑", "↓", "←", "→", "Home", "End", "|", "/", "-", "~"] as const;
export type BarKey = (typeof barKeys)[number];

export const keyNames: Partial<Record<BarKey, string>> = {
  "↑": "Up",
  "↓": "Down",
  "←": "Left",
  "→": "Right",
};

const finals: Partial<Record<BarKey, string>> = { "↑": "A", "↓": "B", "→": "C", "←": "D", Home: "H", End: "F" };

/** Programs choose between two dialects of cursor keys; with Ctrl there is only one. */
export function keySequence(key: BarKey, { application, ctrl }: { application: boolean; ctrl: boolean }): string {
  if (key === "Esc") return "\x1b";
  if (key === "Tab") return "\t";
  const final = finals[key];
  if (final === undefined) return ctrl ? withCtrl(key) : key;
  if (ctrl) return `\x1b[1;5${final}`;
  return application ? `\x1bO${final}` : `\x1b[${final}`;
}

/** What Ctrl makes of one typed character; anything else stays as it is. */
export function withCtrl(text: string): string {
  if (text.length !== 1) return text;
  const code = text.toUpperCase().charCodeAt(0);
  if (code >= 0x40 && code <= 0x5f) return String.fromCharCode(code & 0x1f);
  if (text === " ") return "\0";
  if (text === "?") return "\x7f";
  if (text === "/") return "\x1f";
  return text;
}
