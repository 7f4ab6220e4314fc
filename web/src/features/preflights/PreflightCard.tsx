// The last preflight of a node or an allocation, hop by hop while it runs, and the last good one.

import { type Preflight, startPreflight } from "@holdfast/contracts/endpoints/preflights";
import { checkOf } from "@holdfast/contracts/preflight/checks";
import type { PreflightHopReport, PreflightResult, PreflightStatus } from "@holdfast/contracts/preflight/report";
import { owners } from "@holdfast/contracts/reasons/owners";
import {
  preflightResultTitles,
  preflightStateTitles,
  preflightStatusTitles,
  preflightVantageTitles,
  preflightWhyTitles,
} from "@holdfast/contracts/words/preflight";
import { Button } from "../../design/controls/Button.tsx";
import { Card } from "../../design/layout/Card.tsx";
import { Prose } from "../../design/layout/Prose.tsx";
import { marksOf } from "../../design/values/marks.ts";
import { StatusMark } from "../../design/values/StatusMark.tsx";
import { When } from "../../design/values/When.tsx";
import { newIdempotencyKey } from "../../idempotency.ts";
import { useActing } from "../../session.ts";
import { useChange } from "../../use-change.ts";
import { type PreflightSubject, useLastPreflight } from "./queries.ts";

const hopMarks = marksOf<PreflightStatus>(preflightStatusTitles, {
  passed: "ok",
  failed: "failed",
  not_run: "unknown",
});
const resultMarks = marksOf<PreflightResult>(preflightResultTitles, {
  ready: "ok",
  failed: "failed",
  incomplete: "unknown",
});

export function PreflightCard({ of }: { of: PreflightSubject }) {
  const { may } = useActing();
  const last = useLastPreflight(of).data ?? null;
  const good = useLastPreflight(of, "ready").data ?? null;
  const { node_id, allocation_id } = of;
  const start = useChange<Preflight>({
    send: (call) => call(startPreflight, { params: { node_id }, body: allocation_id ? { allocation_id } : {} }),
  });
  const isRunning = last?.state === "running";
  return (
    <Card
      title="Preflight"
      note={
        good ? (
          <>
            last ready <When at={good.finished_at ?? good.started_at} />
          </>
        ) : (
          "never ready"
        )
      }
    >
      {start.error && (
        <p role="alert" className="px-5 py-3">
          {start.error.message}
        </p>
      )}
      {may("nodes:write") && (
        <div className="border-b border-line px-5 py-3">
          <Button busy={isRunning || start.isPending} onClick={() => start.mutate(newIdempotencyKey())}>
            {isRunning ? "Running preflight" : "Run preflight"}
          </Button>
        </div>
      )}
      {last ? <LastRun run={last} /> : <p className="px-5 py-4 text-ink-muted">Not run yet.</p>}
    </Card>
  );
}

function LastRun({ run }: { run: Preflight }) {
  const { state, result, report, run_by, run_from, started_at, hops } = run;
  const classification = report?.classification;
  const mark = result ? resultMarks[result] : null;
  return (
    <>
      <p className="flex flex-wrap items-baseline gap-x-2 border-b border-line px-5 py-2" role="status">
        {mark ? (
          <StatusMark state={mark.state}>{mark.word}</StatusMark>
        ) : (
          <StatusMark state="unknown">{preflightStateTitles[state].title}</StatusMark>
        )}
        <span className="text-sm text-ink-muted">
          <When at={started_at} /> by {run_by}, from the {preflightVantageTitles[run_from]}
        </span>
      </p>
      {classification && (
        <div className="border-b border-line px-5 py-3">
          <p>
            {classification.title} at <span className="font-mono text-sm">{report.failed_hop}</span>. Owner:{" "}
            {classification.owner ? owners[classification.owner].title : "nobody"}.
          </p>
          <p className="text-sm text-ink-muted">
            <Prose text={classification.recovery} />
          </p>
        </div>
      )}
      {report?.expected.node_terminal_url && (
        <p className="border-b border-line px-5 py-2 text-sm text-ink-muted">
          Profile {report.expected.profile ?? "unknown"}, node-facing terminal endpoint{" "}
          <span className="font-mono">{report.expected.node_terminal_url}</span>
        </p>
      )}
      <ol aria-label="Hops of the last preflight">
        {hops.map((hop) => (
          <Hop key={hop.hop} hop={hop} />
        ))}
      </ol>
    </>
  );
}

function Hop({ hop }: { hop: PreflightHopReport }) {
  const { state, word, meaning } = hopMarks[hop.status];
  const from = hop.checked_from ? `from the ${preflightVantageTitles[hop.checked_from]}` : null;
  const why = hop.why ? preflightWhyTitles[hop.why] : null;
  return (
    <li className="border-b border-line px-5 py-2 last:border-b-0">
      <div className="flex flex-wrap items-baseline justify-between gap-x-4">
        <span title={checkOf(hop.hop).proves} className="font-mono text-sm">
          {hop.hop}
        </span>
        <span title={meaning}>
          <StatusMark state={state}>{word}</StatusMark>
        </span>
      </div>
      <p className="text-sm break-words text-ink-muted">
        {[hop.failure?.signal, hop.detail || why, from].filter(Boolean).join(" · ")}
      </p>
    </li>
  );
}
