// An error for a person: what happened, the next step, and the correlation id.

import { Link } from "@tanstack/react-router";
import { useEffect, useState } from "react";
import { type Problem, problemOf } from "../../problem.ts";
import { useMayIfSignedIn } from "../../session.ts";
import { Button } from "../controls/Button.tsx";
import { Prose } from "../layout/Prose.tsx";
import { RunbookLink } from "../layout/RunbookLink.tsx";
import { CopyableId } from "../values/Copy.tsx";
import { duration } from "../values/time.ts";

type ErrorNoticeProps = {
  error: unknown;
  onRetry?: () => void;
  /** Where the fields themselves say what is wrong with them. */
  withoutFields?: boolean;
};

export function ErrorNotice({ error, onRetry, withoutFields }: ErrorNoticeProps) {
  const problem = problemOf(error);
  return (
    <div role="alert" className="rounded-md border border-failed/40 bg-failed-soft px-4 py-3">
      <p className="flex items-start gap-2 font-medium text-failed">
        <svg viewBox="0 0 12 12" className="mt-[5px] size-3 shrink-0" aria-hidden="true">
          <path d="M1.5 1.5h9v9h-9z" fill="currentColor" />
        </svg>
        <span>
          <Prose text={problem.message} />
        </span>
      </p>
      <div className="mt-1 pl-5">
        <p>{problem.waitSeconds ? <Wait seconds={problem.waitSeconds} /> : <Prose text={problem.nextStep} />}</p>
        {problem.fields.length > 0 && !withoutFields && (
          <ul className="mt-1 list-disc pl-4">
            {problem.fields.map(({ field, problem: what }) => (
              <li key={`${field} ${what}`}>
                <span className="font-medium">{field}</span>: {what}
              </li>
            ))}
          </ul>
        )}
        <Correlation problem={problem} />
        {problem.runbook && (
          <p className="text-sm">
            <RunbookLink path={problem.runbook} />
          </p>
        )}
        {onRetry && (
          <Button className="mt-2" onClick={onRetry}>
            Try again
          </Button>
        )}
      </div>
    </div>
  );
}

/** Whoever may read it finds there what happened, down to the log line. */
function Correlation({ problem }: { problem: Problem }) {
  const may = useMayIfSignedIn();
  if (!problem.correlationId) return null;
  return (
    <p className="mt-1 flex flex-wrap items-center gap-x-1.5 text-sm text-ink-muted">
      Correlation id <CopyableId id={problem.correlationId} label="Copy correlation id" />
      {may("nodes:diagnose") && (
        <Link
          to="/trace/$traceId"
          params={{ traceId: problem.correlationId }}
          className="rounded-sm font-medium text-kelp hover:underline"
        >
          Show the whole story
        </Link>
      )}
    </p>
  );
}

/** Counts down to when the person can try again. */
function Wait({ seconds }: { seconds: number }) {
  const [end] = useState(() => Date.now() + seconds * 1000);
  const [left, setLeft] = useState(seconds);
  useEffect(() => {
    const timer = setInterval(() => setLeft(Math.max(0, Math.ceil((end - Date.now()) / 1000))), 500);
    return () => clearInterval(timer);
  }, [end]);
  if (left === 0) return "You can try again now.";
  return (
    <>
      Wait <span aria-live="off">{duration(left)}</span>, then try again.
    </>
  );
}
