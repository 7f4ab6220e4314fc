// A link that does not work any more: why, and how to get another.

import type { ErrorCode } from "@holdfast/contracts/errors";
import { Link } from "@tanstack/react-router";
import { buttonClasses } from "../../design/Button.tsx";
import { EntryFrame } from "../../design/EntryFrame.tsx";
import { ErrorNotice } from "../../design/ErrorNotice.tsx";
import { Code, Prose } from "../../design/Prose.tsx";
import { codeOf, problemOf } from "../../problem.ts";

const deadTitles: Partial<Record<ErrorCode, string>> = {
  link_used: "This link was used already",
  link_expired: "This link has expired",
  link_unknown: "This link does not work",
};

/** Also shown when the link dies between opening the page and sending the form. */
export function DeadLink({ error, onRetry }: { error: unknown; onRetry?: () => void }) {
  const title = deadTitles[codeOf(error) ?? "internal_error"];
  const problem = problemOf(error);
  if (!title) {
    return (
      <EntryFrame title="One-time link">
        <ErrorNotice error={error} onRetry={onRetry} />
      </EntryFrame>
    );
  }
  return (
    <EntryFrame title={title} intro={<Prose text={problem.message} />}>
      <p role="alert" className="font-medium">
        <Prose text={problem.nextStep} />
      </p>
      <GetAnother />
    </EntryFrame>
  );
}

export function GetAnother() {
  return (
    <>
      <dl className="mt-6 space-y-3 border-t border-line pt-5 text-sm">
        <div>
          <dt className="font-medium">You administer this server</dt>
          <dd className="text-ink-muted">
            Run <Code>holdfast admin link</Code> there and open the link it prints.
          </dd>
        </div>
        <div>
          <dt className="font-medium">Somebody invited you</dt>
          <dd className="text-ink-muted">Ask them to invite you again; each invitation is a new link.</dd>
        </div>
      </dl>
      <Link to="/sign-in" className={buttonClasses("secondary", "mt-6 w-full")}>
        Sign in with a password
      </Link>
    </>
  );
}
