// Around every page: the banner about the connection, short messages, and the pages for what does
// not exist or went wrong.

import { Link, Outlet } from "@tanstack/react-router";
import { useReach } from "../../connection.ts";
import { buttonClasses } from "../../design/Button.tsx";
import { EntryFrame } from "../../design/EntryFrame.tsx";
import { ErrorNotice } from "../../design/ErrorNotice.tsx";
import { StatusMark } from "../../design/StatusMark.tsx";
import { Toasts } from "../../design/Toast.tsx";

export function Root() {
  return (
    <>
      <ConnectionBanner />
      <Outlet />
      <Toasts />
    </>
  );
}

function ConnectionBanner() {
  const reach = useReach();
  return (
    <div role="status" className="pointer-events-none fixed inset-x-4 bottom-4 z-[55] flex justify-center">
      {reach === "unreachable" && (
        <p className="flex flex-wrap gap-x-2 rounded-md border border-degraded/50 bg-degraded-soft px-4 py-2.5 shadow-raised">
          <StatusMark state="degraded">Holdfast cannot be reached.</StatusMark>
          <span>What you see may be old. Trying again every few seconds; no need to reload.</span>
        </p>
      )}
    </div>
  );
}

export function NotFound() {
  return (
    <EntryFrame title="There is no such page" intro="The address may be mistyped, or the page has moved.">
      <Link to="/" className={buttonClasses("primary")}>
        Go to the overview
      </Link>
    </EntryFrame>
  );
}

export function Fault({ error }: { error: unknown }) {
  return (
    <EntryFrame title="This page did not load">
      <ErrorNotice error={error} onRetry={() => window.location.reload()} />
    </EntryFrame>
  );
}
