// The id of an event, with the way to the audit trail.

import { Link } from "@tanstack/react-router";
import { CopyableId } from "../../design/values/Copy.tsx";
import { useActing } from "../../session.ts";
import { TraceLink } from "../trace/TraceLink.tsx";

export function Correlation({ id }: { id: string }) {
  const { may } = useActing();
  return (
    <p className="flex flex-wrap items-center gap-x-1.5 text-sm text-ink-muted">
      Correlation id <CopyableId id={id} label="Copy correlation id" />
      {may("audit:read") && (
        <Link
          to="/audit"
          search={{ correlation_id: id }}
          className="rounded-sm font-medium text-kelp hover:underline"
        >
          Show in the audit trail
        </Link>
      )}
      <TraceLink id={id} />
    </p>
  );
}
