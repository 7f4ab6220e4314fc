// An HTTP method, as wide as the longest so that lists align.

import { classes } from "../../design/controls/classes.ts";

export function MethodTag({ method }: { method: string }) {
  return (
    <span
      className={classes(
        "w-13 shrink-0 rounded-sm py-px text-center font-mono text-xs font-medium",
        method === "GET" && "bg-sunken text-ink-muted",
        method === "DELETE" && "bg-failed-soft text-failed",
        method !== "GET" && method !== "DELETE" && "bg-kelp-soft text-kelp",
      )}
    >
      {method}
    </span>
  );
}
