// A link that no longer works: the reason, and how to get another.

import { codeOf } from "@holdfast/contracts/client";
import type { ErrorCode } from "@holdfast/contracts/errors";
import { Link } from "@tanstack/react-router";
import { buttonClasses } from "../../design/controls/Button.tsx";
import { ErrorNotice } from "../../design/feedback/ErrorNotice.tsx";
import { EntryFrame } from "../../design/layout/EntryFrame.tsx";
import { Code } from "../../design/layout/Prose.tsx";

const reasons: Partial<Record<ErrorCode, { title: string; text: string }>> = {
  link_used: {
    title: "This link has already been used",
    text: "Each link works once. If you used it yourself, sign in with the password you set then.",
  },
  link_expired: {
    title: "This link has expired",
    text: "Links for administrators work for 15 minutes, invitations for 7 days.",
  },
  link_unknown: {
    title: "This link does not work",
    text: "It was not copied completely, or it was replaced by a newer link.",
  },
};

/** Also shown when the link dies between opening the page and sending the form. */
export function DeadLink({ error, onRetry }: { error: unknown; onRetry?: () => void }) {
  const reason = reasons[codeOf(error) ?? "internal_error"];
  if (!reason) {
    return (
      <EntryFrame title="One-time link">
        <ErrorNotice error={error} onRetry={onRetry} />
      </EntryFrame>
    );
  }
  return (
    <EntryFrame title={reason.title} intro={<p role="alert">{reason.text}</p>}>
      <GetAnother />
    </EntryFrame>
  );
}

export function GetAnother() {
  return (
    <>
      <dl className="space-y-3 border-t border-line pt-5">
        <div>
          <dt className="font-medium">You administer this server</dt>
          <dd className="text-ink-muted">
            Run <Code>holdfast admin link</Code> there and open the link it prints.
          </dd>
        </div>
        <div>
          <dt className="font-medium">You were invited</dt>
          <dd className="text-ink-muted">Ask them to invite you again; each invitation is a new link.</dd>
        </div>
      </dl>
      <Link to="/sign-in" className={buttonClasses("secondary", "mt-6 w-full")}>
        Sign in with a password
      </Link>
    </>
  );
}
