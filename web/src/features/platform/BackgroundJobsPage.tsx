// What the installation does by itself, for its operator: when each job ran last, what it did, and which ones fail.

import type { BackgroundJob } from "@holdfast/contracts/endpoints/platform";
import { useQuery } from "@tanstack/react-query";
import { EmptyState } from "../../design/feedback/EmptyState.tsx";
import { ErrorNotice } from "../../design/feedback/ErrorNotice.tsx";
import { Loading } from "../../design/feedback/Loading.tsx";
import { PageHeader } from "../../design/layout/PageHeader.tsx";
import { Code } from "../../design/layout/Prose.tsx";
import { Cell, Table, wideOnly } from "../../design/lists/Table.tsx";
import { StatusMark } from "../../design/values/StatusMark.tsx";
import { duration, tookMs } from "../../design/values/time.ts";
import { When } from "../../design/values/When.tsx";
import { useMe } from "../../session.ts";
import { failingFirst, jobMarks, placeWords, resultWords, titleOf } from "./job-words.ts";
import { platformStatusQuery } from "./queries.ts";

export function BackgroundJobsPage() {
  const me = useMe();
  return (
    <>
      <PageHeader title="Background jobs">
        What this installation does by itself. A job that fails runs again at its next turn.
      </PageHeader>
      {me.operator ? <Jobs /> : <NotForYou />}
    </>
  );
}

function NotForYou() {
  return (
    <EmptyState title="Only platform operators can see background jobs">
      Ask an operator of this installation, or run <Code>holdfast status --jobs</Code> on its machine.
    </EmptyState>
  );
}

function Jobs() {
  const status = useQuery(platformStatusQuery);
  if (status.error) return <ErrorNotice error={status.error} onRetry={() => void status.refetch()} />;
  if (!status.data) return <Loading what="background jobs" />;
  return (
    <Table
      label="Background jobs"
      columns={[
        "Job",
        "State",
        "Last run",
        { wide: "Took" },
        { wide: "Result" },
        { wide: "Every" },
        { wide: "Overruns" },
      ]}
    >
      {failingFirst(status.data.jobs).map((job) => (
        <JobRow key={job.name} job={job} />
      ))}
    </Table>
  );
}

function JobRow({ job }: { job: BackgroundJob }) {
  const { state, word } = jobMarks[job.state];
  return (
    <tr>
      <Cell>
        <span className="font-medium">{titleOf(job)}</span>
        <span className="block text-sm text-ink-muted">{placeWords[job.runs_in]}</span>
        {job.state === "failing" && (
          <span className="block text-sm text-failed [overflow-wrap:anywhere]">
            {job.last_failure}
            {job.last_failed_at && (
              <>
                {" "}
                (<When at={job.last_failed_at} />)
              </>
            )}
          </span>
        )}
      </Cell>
      <Cell>
        <StatusMark state={state}>{word}</StatusMark>
      </Cell>
      <Cell>{job.last_started_at ? <When at={job.last_started_at} /> : "Never"}</Cell>
      <Cell className={wideOnly}>{job.last_duration_ms === null ? "–" : tookMs(job.last_duration_ms)}</Cell>
      <Cell className={wideOnly}>{resultWords(job.last_result)}</Cell>
      <Cell className={wideOnly}>{job.every_seconds === null ? "–" : duration(job.every_seconds)}</Cell>
      <Cell className={wideOnly}>{job.overruns}</Cell>
    </tr>
  );
}
