// The newest audit events of the organization, with the way to all of them.

import { listAudit } from "@holdfast/contracts/endpoints/audit";
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { ErrorNotice } from "../../design/feedback/ErrorNotice.tsx";
import { Card } from "../../design/layout/Card.tsx";
import { StatusMark } from "../../design/values/StatusMark.tsx";
import { When } from "../../design/values/When.tsx";
import { useActing } from "../../session.ts";
import { resultMarks } from "../audit/result-marks.ts";

export function RecentActivity() {
  const { org, call } = useActing();
  const recent = useQuery({
    queryKey: ["org", org.id, "audit", "recent"],
    queryFn: ({ signal }) => call(listAudit, { query: { limit: 6 }, signal }),
    staleTime: 0,
  });
  const everything = (
    <Link to="/audit" className="rounded-sm font-medium text-kelp hover:underline">
      All events
    </Link>
  );
  return (
    <Card title="Recent activity" note={everything}>
      {recent.error && (
        <div className="p-5">
          <ErrorNotice error={recent.error} onRetry={() => void recent.refetch()} />
        </div>
      )}
      {recent.data?.items.length === 0 && <p className="px-5 py-4 text-ink-muted">No events yet.</p>}
      <ul>
        {recent.data?.items.map((event) => (
          <li
            key={event.id}
            className="flex items-baseline gap-4 border-b border-line px-5 py-2.5 last:border-b-0"
          >
            <div className="min-w-0 flex-1">
              <span className="font-mono text-sm">{event.action}</span>
              <span className="block truncate text-sm text-ink-muted">
                {event.actor_name}
                {event.target_name && ` → ${event.target_name}`}
              </span>
            </div>
            <div className="text-right text-sm">
              {event.result !== "allowed" && (
                <StatusMark state={resultMarks[event.result].state}>{resultMarks[event.result].word}</StatusMark>
              )}
              <span className="block text-ink-muted">
                <When at={event.at} />
              </span>
            </div>
          </li>
        ))}
      </ul>
    </Card>
  );
}
