// Everything that happened in a run, oldest first, with what each event carries.

import type { RunEventEntry } from "@holdfast/contracts/endpoints/runs";
import { useState } from "react";
import { Button } from "../../design/controls/Button.tsx";
import { ErrorNotice } from "../../design/feedback/ErrorNotice.tsx";
import { Loading } from "../../design/feedback/Loading.tsx";
import { Card } from "../../design/layout/Card.tsx";
import { type State, StatusMark } from "../../design/values/StatusMark.tsx";
import { When } from "../../design/values/When.tsx";
import type { useRunEvents } from "./queries.ts";

/** More are a click away; a run of many steps and attempts has thousands. */
const SHOWN = 100;

type RunEventsProps = { events: ReturnType<typeof useRunEvents>; onSelect: (node: string) => void };

export function RunEvents({ events: { data, error, refetch }, onSelect }: RunEventsProps) {
  const [all, setAll] = useState(false);
  const shown = all ? data : data?.slice(-SHOWN);
  const hidden = (data?.length ?? 0) - (shown?.length ?? 0);
  return (
    <Card title="Events" note={data && `${data.length} ${data.length === 1 ? "event" : "events"}, oldest first`}>
      {error && (
        <div className="p-5">
          <ErrorNotice error={error} onRetry={() => void refetch()} />
        </div>
      )}
      {!data && !error && (
        <div className="px-5">
          <Loading what="events" />
        </div>
      )}
      {data?.length === 0 && <p className="px-5 py-4 text-ink-muted">Nothing has happened yet.</p>}
      {hidden > 0 && (
        <p className="px-3 py-2">
          <Button look="quiet" onClick={() => setAll(true)}>
            Show {hidden} earlier events
          </Button>
        </p>
      )}
      <ol aria-label="Events">
        {shown?.map((event) => (
          <Entry key={event.seq} event={event} onSelect={onSelect} />
        ))}
      </ol>
    </Card>
  );
}

const states: Record<string, State> = {
  run_started: "moving",
  node_started: "moving",
  node_dispatched: "moving",
  run_retried: "moving",
  node_waiting: "degraded",
  node_retried: "degraded",
  run_cancel_requested: "ended",
  run_cancelled: "ended",
  node_skipped: "ended",
  node_succeeded: "ok",
  run_succeeded: "ok",
  node_failed: "failed",
  run_failed: "failed",
};

function Entry({ event, onSelect }: { event: RunEventEntry; onSelect: (node: string) => void }) {
  const { type, node, attempt, at, data } = event;
  return (
    <li className="grid gap-x-4 border-b border-line px-5 py-2 last:border-b-0 sm:grid-cols-[13rem_1fr_auto]">
      <StatusMark state={states[type] ?? "unknown"}>
        <span className="font-mono text-sm text-ink">{type}</span>
      </StatusMark>
      <span className="min-w-0 text-sm [overflow-wrap:anywhere]">
        {node !== null && (
          <button
            type="button"
            onClick={() => onSelect(node)}
            className="rounded-sm font-medium text-kelp hover:underline"
          >
            {node}
          </button>
        )}
        {attempt !== null && attempt > 1 && ` attempt ${attempt}`}
        <span className="text-ink-muted"> {summaryOf(data)}</span>
      </span>
      <span className="text-sm text-ink-muted">
        <When at={at} exact />
      </span>
    </li>
  );
}

const MOST_CHARACTERS = 160;

function summaryOf(data: Record<string, unknown>): string {
  const failure = data["failure"] as { message?: string } | undefined;
  if (failure?.message) return failure.message;
  const entries = Object.entries(data).filter(([, value]) => value !== null);
  if (entries.length === 0) return "";
  const text = entries.map(([name, value]) => `${name} ${JSON.stringify(value)}`).join(", ");
  return text.length > MOST_CHARACTERS ? `${text.slice(0, MOST_CHARACTERS)}…` : text;
}
