// The problems of the fleet by reason: how many nodes, since when, what they have in common, and the next step.

import type { Fleet, Trouble } from "@holdfast/contracts/endpoints/fleet";
import { owners } from "@holdfast/contracts/reasons/owners";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { Button } from "../../design/controls/Button.tsx";
import { classes } from "../../design/controls/classes.ts";
import { Notice } from "../../design/feedback/Notice.tsx";
import { Prose } from "../../design/layout/Prose.tsx";
import { duration, exactTime } from "../../design/values/time.ts";
import { useNow } from "../../design/values/use-now.ts";
import type { NodeFilters } from "../nodes/filters.ts";
import { TraceLink } from "../trace/TraceLink.tsx";
import { nodesInWords } from "./words.ts";

export function ControlPlaneSuspicion({ suspicion }: { suspicion: Fleet["own_side"] }) {
  if (!suspicion) return null;
  return (
    <div role="alert" className="mb-4">
      <Notice state="failed" title={suspicion.message}>
        <Prose text={suspicion.next_step} /> <TraceLink id={suspicion.incident_id} of="incident" />
      </Notice>
    </div>
  );
}

export function BrakeNotice({ brake }: { brake: Fleet["brake"] }) {
  if (!brake) return null;
  return (
    <div role="status" className="mb-4">
      <Notice state="degraded" title={brake.message} />
    </div>
  );
}

const shownAtFirst = 4;

export function Troubles({ troubles, pending }: Pick<Fleet, "troubles" | "pending">) {
  const [all, setAll] = useState(false);
  const shown = all ? troubles : troubles.slice(0, shownAtFirst);
  return (
    <>
      {pending > 0 && (
        <p className="border-b border-line px-5 py-2.5 text-ink-muted last:border-b-0">
          {nodesInWords(pending)} offline, cause being determined
        </p>
      )}
      <ul
        aria-label="Problems"
        className={classes("grid gap-px overflow-hidden bg-line", shown.length > 1 && "lg:grid-cols-2")}
      >
        {shown.map((trouble) => (
          <TroubleItem key={trouble.code} trouble={trouble} />
        ))}
        {shown.length > 1 && shown.length % 2 === 1 && (
          <li aria-hidden="true" className="hidden bg-surface lg:block" />
        )}
      </ul>
      {troubles.length > shown.length && (
        <Button look="quiet" className="w-full rounded-none" onClick={() => setAll(true)}>
          {troubles.length - shown.length === 1
            ? "One more reason"
            : `${troubles.length - shown.length} more reasons`}
        </Button>
      )}
    </>
  );
}

function TroubleItem({ trouble }: { trouble: Trouble }) {
  const { code, title, severity, owner_id, message, next_step } = trouble;
  return (
    <li className="bg-surface px-5 py-3.5">
      <div className="flex flex-wrap items-baseline justify-between gap-x-4">
        <Filter to={{ attention: code }} className="font-semibold text-kelp">
          {title}: {nodesInWords(trouble.count)}
        </Filter>
        <Began trouble={trouble} />
      </div>
      <p className="text-sm text-ink-muted">
        {[severity, owner_id && owners[owner_id].title].filter(Boolean).join(" · ")}
      </p>
      <p className="mt-0.5">
        <Prose text={message} /> <span className="font-mono text-sm text-ink-muted">{code}</span>
      </p>
      {trouble.common.length > 0 && (
        <ul className="mt-1.5 flex flex-wrap gap-1.5" aria-label="In common">
          {trouble.common.map((share) => (
            <li key={share.incident_id}>
              <Common share={share} trouble={trouble} />
            </li>
          ))}
        </ul>
      )}
      <p className="mt-1.5 text-sm text-ink-muted">
        <Prose text={next_step} />
      </p>
    </li>
  );
}

function Began({ trouble: { first_at, last_at } }: { trouble: Trouble }) {
  const now = useNow("quarter minutes");
  if (!first_at || !last_at) return null;
  const ago = (at: string) =>
    duration(Math.floor(Math.max(0, now - Date.parse(at)) / 60_000) * 60).replace(/^0 s$/, "a moment");
  const [first, last] = [ago(first_at), ago(last_at)];
  return (
    <span
      className="text-sm text-ink-muted tabular-nums"
      title={`${exactTime(first_at)} to ${exactTime(last_at)}`}
    >
      {first === last ? `for ${first}` : `for ${last} to ${first}`}
    </span>
  );
}

/** By what nodes can be filtered. */
const filterOf: Partial<Record<Trouble["common"][number]["attribute"], "version" | "block">> = {
  agent_version: "version",
  subnet: "block",
};

function Common({ share, trouble }: { share: Trouble["common"][number]; trouble: Trouble }) {
  const { attribute, value, sentence, incident_id } = share;
  const chip = "inline-flex rounded-sm bg-degraded-soft px-1.5 py-0.5 text-sm font-medium text-degraded";
  const filter = filterOf[attribute];
  return (
    <>
      {filter !== undefined && value !== null ? (
        <Filter to={{ attention: trouble.code, [filter]: value }} className={chip}>
          {sentence}
        </Filter>
      ) : (
        <span className={chip}>{sentence}</span>
      )}{" "}
      <TraceLink id={incident_id} of="common cause" />
    </>
  );
}

function Filter({ to, className, children }: { to: NodeFilters; className: string; children: React.ReactNode }) {
  return (
    <Link to="/nodes" search={to} resetScroll={false} className={`rounded-sm hover:underline ${className}`}>
      {children}
    </Link>
  );
}
