// On a touch screen: the keys that its keyboard does not have.

import { classes } from "../../design/controls/classes.ts";
import { barKeys, keyNames } from "./keys.ts";
import type { Screen } from "./screen.ts";

type KeyBarProps = { screen: Screen; ctrl: boolean; onCtrl: (held: boolean) => void };

const keyClasses =
  "h-10 min-w-10 shrink-0 rounded-md border border-line-strong bg-surface px-2.5 font-mono text-sm text-ink active:bg-hover";

export function KeyBar({ screen, ctrl, onCtrl }: KeyBarProps) {
  return (
    <div
      role="toolbar"
      aria-label="Keys"
      // The focus stays in the terminal: a keyboard on the screen would go away with it.
      onPointerDown={(event) => event.preventDefault()}
      className="hidden shrink-0 gap-1.5 overflow-x-auto border-t border-line bg-sunken p-1.5 max-sm:flex pointer-coarse:flex"
    >
      <button
        type="button"
        aria-pressed={ctrl}
        onClick={() => onCtrl(!ctrl)}
        className={classes(keyClasses, ctrl && "border-kelp bg-kelp-soft text-kelp")}
      >
        Ctrl
      </button>
      {barKeys.map((key) => (
        <button
          key={key}
          type="button"
          aria-label={keyNames[key] ?? key}
          onClick={() => screen.press(key)}
          className={keyClasses}
        >
          {key}
        </button>
      ))}
    </div>
  );
}
