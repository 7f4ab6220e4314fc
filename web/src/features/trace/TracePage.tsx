// The whole story behind an id: what was refused and observed, what it was classified as, what was done, and what proved
// it. In the order of time.

import {
  getTrace,
  MOST_TRACED,
  type Trace,
  type TraceEntry,
  type TraceKind,
} from "@holdfast/contracts/endpoints/trace";
import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { useState } from "react";
import { Button } from "../../design/controls/Button.tsx";
import { EmptyState } from "../../design/feedback/EmptyState.tsx";
import { Notice } from "../../design/feedback/Notice.tsx";
import { NotLoaded } from "../../design/feedback/NotLoaded.tsx";
import { Card } from "../../design/layout/Card.tsx";
import { PageHeader } from "../../design/layout/PageHeader.tsx";
import { CopyableId } from "../../design/values/Copy.tsx";
import { type State, StatusMark } from "../../design/values/StatusMark.tsx";
import { When } from "../../design/values/When.tsx";
import { useRefetchInterval } from "../../live.ts";
import { useActing } from "../../session.ts";
import { EvidenceButton } from "../evidence/EvidenceButton.tsx";

const route = getRouteApi("/signed-in/trace/$traceId");

export function TracePage() {
  const { traceId } = route.useParams();
  const { org, call } = useActing();
  const refetchInterval = useRefetchInterval();
  const trace = useQuery({
    queryKey: ["org", org.id, "trace", traceId],
    queryFn: ({ signal }) => call(getTrace, { params: { trace_id: traceId }, signal }),
    refetchInterval,
  });
  if (trace.data) return <Shown trace={trace.data} />;
  return (
    <>
      <PageHeader title="Trace" />
      <NotLoaded
        noun="trace"
        query={trace}
        explanation="Nothing is recorded under this id, its history is no longer kept, or you have no access to it. If it belongs to another of your organizations, switch to that one first."
      />
    </>
  );
}

function Shown({ trace }: { trace: Trace }) {
  const { id, incidents, items, truncated, withheld, replicas } = trace;
  const [shown, setShown] = useState<"all" | "log" | "story">("all");
  const chosen = items.filter(({ kind }) => shown === "all" || (kind === "log") === (shown === "log"));
  const missing = replicas.filter(({ state }) => state !== "answered");
  return (
    <>
      <PageHeader title="Trace" actions={<EvidenceButton subjectId={id} />}>
        <span className="flex flex-wrap items-center gap-x-1.5">
          <CopyableId id={id} label="Copy id" />
        </span>
      </PageHeader>
      <div className="grid gap-6">
        {incidents.map((incident) => (
          <Incident key={incident.id} incident={incident} />
        ))}
        {truncated && (
          <Notice state="unknown" title="There is more">
            <p>Of each source the newest {MOST_TRACED} entries are shown.</p>
          </Notice>
        )}
        {withheld.length > 0 && (
          <Notice state="unknown" title="Part of the story is left out">
            <p>You lack: {withheld.join(", ")}</p>
          </Notice>
        )}
        {missing.length > 0 && (
          <Notice state="degraded" title="Log lines are missing">
            <p>
              {missing
                .map(({ process, host, state }) => {
                  const why = state === "unreachable" ? "did not answer" : "keeps no lines";
                  return `${process}${host === null ? "" : ` on ${host}`} ${why}`;
                })
                .join(" · ")}
            </p>
          </Notice>
        )}
        <Card
          title="Story"
          note={
            <span className="flex flex-wrap items-center justify-end gap-x-3 gap-y-1">
              {`${chosen.length} of ${items.length} entries, oldest first`}
              <Choice chosen={shown} onChoose={setShown} />
            </span>
          }
        >
          {chosen.length === 0 ? (
            <EmptyState title="Nothing to show">
              <p>Nothing is recorded under this id that you have access to.</p>
            </EmptyState>
          ) : (
            <ol aria-label="Story">
              {chosen.map((entry) => (
                <Entry key={keyOf(entry)} entry={entry} />
              ))}
            </ol>
          )}
        </Card>
      </div>
    </>
  );
}

const keyOf = ({ at, kind, title, ref, by, detail }: TraceEntry) =>
  JSON.stringify([at, kind, title, ref?.id, by, detail]);

const choices = { all: "Everything", story: "Without logs", log: "Logs only" } as const;
type Chosen = keyof typeof choices;

function Choice({ chosen, onChoose }: { chosen: Chosen; onChoose: (next: Chosen) => void }) {
  return (
    <fieldset className="flex gap-1" aria-label="Entries shown">
      {(Object.keys(choices) as Chosen[]).map((one) => (
        <Button
          key={one}
          look={one === chosen ? "secondary" : "quiet"}
          aria-pressed={one === chosen}
          onClick={() => onChoose(one)}
        >
          {choices[one]}
        </Button>
      ))}
    </fieldset>
  );
}

function Incident({ incident }: { incident: Trace["incidents"][number] }) {
  const { node_id, node_name, title, state, opened_at, closed_at } = incident;
  return (
    <p className="flex flex-wrap items-baseline gap-x-2">
      <StatusMark state={state === "open" ? "degraded" : "ok"}>{title}</StatusMark>
      {node_id && (
        <Link to="/nodes/$nodeId" params={{ nodeId: node_id }} className="rounded-sm text-kelp hover:underline">
          {node_name}
        </Link>
      )}
      <span className="text-sm text-ink-muted">
        opened <When at={opened_at} />
        {closed_at && (
          <>
            , closed <When at={closed_at} />
          </>
        )}
      </span>
    </p>
  );
}

const kinds: Record<TraceKind, { word: string; state: State }> = {
  refusal: { word: "Refusal", state: "failed" },
  observation: { word: "Observation", state: "unknown" },
  classification: { word: "Classification", state: "degraded" },
  action: { word: "Action", state: "moving" },
  result: { word: "Result", state: "ended" },
  proof: { word: "Proof", state: "ok" },
  notification: { word: "Notification", state: "unknown" },
  log: { word: "Log", state: "unknown" },
};

/** Log lines begin with their level. */
function stateOf({ kind, title }: TraceEntry): State {
  if (kind !== "log") return kinds[kind].state;
  return /^(error|fatal):/.test(title) ? "failed" : title.startsWith("warn:") ? "degraded" : "unknown";
}

function Entry({ entry }: { entry: TraceEntry }) {
  const { at, kind, title, code, detail, by } = entry;
  return (
    <li className="grid gap-x-4 border-b border-line px-5 py-2 last:border-b-0 sm:grid-cols-[9rem_1fr_auto]">
      <StatusMark state={stateOf(entry)}>{kinds[kind].word}</StatusMark>
      <div className="min-w-0">
        <p className="[overflow-wrap:anywhere]">
          {kind === "log" ? <span className="font-mono text-sm">{title}</span> : title}{" "}
          {code && <span className="font-mono text-sm text-ink-muted">{code}</span>}
        </p>
        {(detail || by) && (
          <p className="text-sm text-ink-muted [overflow-wrap:anywhere]">
            {[by, detail].filter(Boolean).join(" · ")}
          </p>
        )}
        <Reference entry={entry} />
      </div>
      <span className="text-sm text-ink-muted">
        <When at={at} exact />
      </span>
    </li>
  );
}

const linkClasses = "rounded-sm text-sm text-kelp hover:underline";

function Reference({ entry: { ref, correlation_id } }: { entry: TraceEntry }) {
  const { may } = useActing();
  if (ref?.type === "task") {
    return (
      <Link to="/tasks/$taskId" params={{ taskId: ref.id }} className={linkClasses}>
        Open task
      </Link>
    );
  }
  if (ref?.type === "allocation") {
    return (
      <Link to="/allocations/$allocationId" params={{ allocationId: ref.id }} className={linkClasses}>
        Open allocation
      </Link>
    );
  }
  if (!correlation_id || !may("audit:read")) return null;
  return (
    <Link to="/audit" search={{ correlation_id }} className={linkClasses}>
      Show in the audit trail
    </Link>
  );
}
