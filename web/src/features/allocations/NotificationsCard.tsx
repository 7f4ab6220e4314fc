// What the people of an allocation were told about the node behind it, newest first.

import type { Allocation } from "@holdfast/contracts/endpoints/allocations";
import { ErrorNotice } from "../../design/feedback/ErrorNotice.tsx";
import { Card } from "../../design/layout/Card.tsx";
import { StatusMark } from "../../design/values/StatusMark.tsx";
import { When } from "../../design/values/When.tsx";
import { userStateMarks } from "./allocation-marks.ts";
import { useNotifications } from "./queries.ts";

export function NotificationsCard({ allocation }: { allocation: Allocation }) {
  const notifications = useNotifications(allocation.id);
  const items = notifications.data?.items;
  if (items?.length === 0) return null;
  return (
    <Card title="Notifications">
      {notifications.error && (
        <div className="p-5">
          <ErrorNotice error={notifications.error} onRetry={() => void notifications.refetch()} />
        </div>
      )}
      <ul aria-label="Notifications">
        {items?.map(({ id, at, state, title, message }) => (
          <li key={id} className="border-b border-line px-5 py-3 last:border-b-0">
            <div className="flex flex-wrap items-baseline justify-between gap-x-4">
              <StatusMark state={userStateMarks[state].state}>{title}</StatusMark>
              <span className="text-sm text-ink-muted">
                <When at={at} />
              </span>
            </div>
            <p className="mt-1 text-sm text-ink-muted">{message}</p>
          </li>
        ))}
      </ul>
    </Card>
  );
}
