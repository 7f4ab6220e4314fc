// The state of the platform's processes, for its operator.

import type { BackgroundJob, CanaryResult } from "@holdfast/contracts/endpoints/platform";
import { type CanarySummary, summarizeCanaries } from "@holdfast/contracts/words/canaries";
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { ErrorNotice } from "../../design/feedback/ErrorNotice.tsx";
import { Loading } from "../../design/feedback/Loading.tsx";
import { Card } from "../../design/layout/Card.tsx";
import { Code } from "../../design/layout/Prose.tsx";
import { type State, StatusMark } from "../../design/values/StatusMark.tsx";
import { When } from "../../design/values/When.tsx";
import { platformStatusQuery } from "../platform/queries.ts";

export function PlatformCard() {
  const status = useQuery(platformStatusQuery);
  return (
    <Card title="Platform" note={status.data && <span className="font-mono">{status.data.version}</span>}>
      {status.error && (
        <div className="p-5">
          <ErrorNotice error={status.error} onRetry={() => void status.refetch()} />
        </div>
      )}
      {!status.data && !status.error && (
        <div className="px-5">
          <Loading what="the platform's status" />
        </div>
      )}
      {status.data && (
        <dl aria-live="polite">
          <Part name="API" state="ok" word="Running">
            Instance <span className="font-mono text-xs [overflow-wrap:anywhere]">{status.data.instance_id}</span>
          </Part>
          <Worker worker={status.data.worker} />
          <Part
            name="Database"
            state={status.data.database.ok ? "ok" : "failed"}
            word={status.data.database.ok ? "Connected" : "Failed"}
          >
            PostgreSQL {status.data.database.version}, {status.data.database.migrations} migrations applied
          </Part>
          <Ingress canaries={status.data.canaries} />
          <Jobs jobs={status.data.jobs} />
        </dl>
      )}
    </Card>
  );
}

function Worker({ worker }: { worker: { ok: boolean; last_seen_at: string | null } }) {
  if (worker.ok) {
    return (
      <Part name="Worker" state="ok" word="Running">
        {worker.last_seen_at && (
          <>
            Seen <When at={worker.last_seen_at} />
          </>
        )}
      </Part>
    );
  }
  return (
    <Part
      name="Worker"
      state={worker.last_seen_at ? "failed" : "unknown"}
      word={worker.last_seen_at ? "Not responding" : "Never started"}
    >
      {worker.last_seen_at && (
        <>
          Last seen <When at={worker.last_seen_at} />.{" "}
        </>
      )}
      Background jobs do not run without it. Start <Code>holdfast worker</Code>, or check its log.
    </Part>
  );
}

const ingressWords: Record<CanarySummary["state"], string> = {
  ok: "Trusted",
  degraded: "Not checked",
  failed: "Rejects certificates",
};

function Ingress({ canaries }: { canaries: readonly CanaryResult[] }) {
  const { state, text } = summarizeCanaries(canaries);
  return (
    <Part name="Ingress" state={state} word={ingressWords[state]}>
      <span className="[overflow-wrap:anywhere]">{text}</span>
    </Part>
  );
}

function Jobs({ jobs }: { jobs: readonly BackgroundJob[] }) {
  const failing = jobs.filter(({ state }) => state === "failing").length;
  return (
    <Part
      name="Jobs"
      state={failing > 0 ? "degraded" : "ok"}
      word={failing > 0 ? `${failing} of ${jobs.length} failing` : "Healthy"}
    >
      <Link to="/platform/background-jobs" className="rounded-sm font-medium text-kelp hover:underline">
        {jobs.length} background jobs
      </Link>
    </Part>
  );
}

type PartProps = { name: string; state: State; word: string; children: ReactNode };

function Part({ name, state, word, children }: PartProps) {
  return (
    <div className="grid grid-cols-[5.5rem_minmax(0,1fr)] gap-x-4 border-b border-line px-5 py-3 last:border-b-0">
      <dt className="font-medium">{name}</dt>
      <dd>
        <StatusMark state={state}>{word}</StatusMark>
        <span className="block text-sm text-ink-muted">{children}</span>
      </dd>
    </div>
  );
}
