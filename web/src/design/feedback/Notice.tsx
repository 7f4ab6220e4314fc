// Something to look at, with what to do about it. It is no error of what was just done: that is ErrorNotice.

import type { ReactNode } from "react";
import { classes } from "../controls/classes.ts";
import { Prose } from "../layout/Prose.tsx";
import { type State, StatusMark } from "../values/StatusMark.tsx";

type NoticeProps = {
  state: Extract<State, "degraded" | "failed" | "unknown">;
  title: string;
  children?: ReactNode;
};

const frames: Record<NoticeProps["state"], string> = {
  degraded: "border-degraded/40 bg-degraded-soft",
  failed: "border-failed/40 bg-failed-soft",
  unknown: "border-line-strong/60 bg-surface",
};

export function Notice({ state, title, children }: NoticeProps) {
  return (
    <div className={classes("rounded-md border px-4 py-3", frames[state])}>
      <StatusMark state={state} long>
        <span>
          <Prose text={title} />
        </span>
      </StatusMark>
      {children && <div className="mt-1 pl-4.5">{children}</div>}
    </div>
  );
}
