// Short messages: that an action succeeded, or that the server is unreachable. They float over
// most pages; a terminal has them in its header, where they cover neither a prompt nor a button.

import { useReach } from "../../connection.ts";
import { Toasts, useToasts } from "../../design/feedback/Toast.tsx";
import { StatusMark } from "../../design/values/StatusMark.tsx";

export function FloatingNotices() {
  const reach = useReach();
  return (
    <>
      <div role="status" className="pointer-events-none fixed inset-x-4 bottom-4 z-[55] flex justify-center">
        {reach === "unreachable" && (
          <p className="flex flex-wrap gap-x-2 rounded-md border border-degraded/50 bg-degraded-soft px-4 py-2.5 shadow-raised">
            <StatusMark state="degraded">Holdfast is unreachable.</StatusMark>
            <span>This page may be out of date. Retrying every few seconds; no need to reload.</span>
          </p>
        )}
      </div>
      <Toasts />
    </>
  );
}

export function HeaderNotices() {
  const reach = useReach();
  const newest = useToasts().at(-1);
  return (
    <div role="status" aria-label="Messages" className="flex min-w-0 shrink gap-2 text-sm">
      {newest && (
        <span className="truncate rounded-sm bg-surface px-2 py-0.5">
          <StatusMark state={newest.state}>
            <span className="text-ink">{newest.text}</span>
          </StatusMark>
        </span>
      )}
      {!newest && reach === "unreachable" && (
        <span
          className="truncate rounded-sm bg-surface px-2 py-0.5 max-sm:hidden"
          title="The control plane does not respond. Open terminals keep working without it."
        >
          <StatusMark state="degraded">Holdfast is unreachable</StatusMark>
        </span>
      )}
    </div>
  );
}
