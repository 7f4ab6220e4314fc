// A short word in a frame: a role, a scope, an HTTP method.

import type { ReactNode } from "react";
import { classes } from "../controls/classes.ts";

type TagProps = { children: ReactNode; mono?: boolean; strong?: boolean };

export function Tag({ children, mono, strong }: TagProps) {
  return (
    <span
      className={classes(
        "inline-flex h-5.5 items-center rounded-sm px-1.5 text-xs font-medium whitespace-nowrap",
        strong ? "bg-kelp-soft text-kelp" : "bg-sunken text-ink-muted",
        mono && "font-mono",
      )}
    >
      {children}
    </span>
  );
}
