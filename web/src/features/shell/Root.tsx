// The frame of every page: short messages, and the pages for unknown addresses and errors.

import { Link, Outlet, useMatches } from "@tanstack/react-router";
import { buttonClasses } from "../../design/controls/Button.tsx";
import { ErrorNotice } from "../../design/feedback/ErrorNotice.tsx";
import { EntryFrame } from "../../design/layout/EntryFrame.tsx";
import { FloatingNotices } from "./Notices.tsx";

export function Root() {
  const hasOwnPlace = useMatches({
    select: (matches) => matches.some(({ routeId }) => routeId.startsWith("/full-window")),
  });
  return (
    <>
      <Outlet />
      {!hasOwnPlace && <FloatingNotices />}
    </>
  );
}

export function NotFound() {
  return (
    <EntryFrame title="Page not found" intro="The address may be mistyped, or the page has moved.">
      <Link to="/" className={buttonClasses("primary")}>
        Go to the overview
      </Link>
    </EntryFrame>
  );
}

export function Fault({ error }: { error: unknown }) {
  return (
    <EntryFrame title="This page failed to load">
      <ErrorNotice error={error} onRetry={() => window.location.reload()} />
    </EntryFrame>
  );
}
