// The frame of all pages behind sign-in: navigation on the left, or in a drawer on narrow screens.

import { Outlet, useRouterState } from "@tanstack/react-router";
import { Suspense, useEffect, useRef } from "react";
import { Loading } from "../../design/feedback/Loading.tsx";
import { useLive } from "../../live.ts";
import { useMembership } from "../../session.ts";
import { NarrowBar } from "./NarrowBar.tsx";
import { Navigation } from "./Navigation.tsx";
import { NoOrganization } from "./NoOrganization.tsx";

export function Shell() {
  const main = useMainFocus();
  const org = useMembership();
  useLive(org?.id);
  return (
    <div className="lg:grid lg:grid-cols-[15rem_minmax(0,1fr)]">
      <a
        href="#main"
        className="fixed top-2 left-2 z-50 -translate-y-16 rounded-md bg-kelp px-4 py-2 font-medium text-on-kelp focus:translate-y-0"
      >
        Skip to content
      </a>
      <aside className="on-deep sticky top-0 hidden h-dvh bg-deep text-on-deep lg:block">
        <Navigation />
      </aside>
      <NarrowBar />
      <main id="main" ref={main} tabIndex={-1} className="min-w-0 px-4 py-6 outline-none sm:px-8 lg:px-10 lg:py-9">
        <div className="mx-auto max-w-6xl">
          <Suspense fallback={<Loading what="the page" />}>
            {/* A page starts anew in another organization: no open form or row carries over. */}
            {org ? <Outlet key={org.id} /> : <NoOrganization />}
          </Suspense>
        </div>
      </main>
    </div>
  );
}

/** After a change of section, keyboard and screen reader continue at the new content. */
function useMainFocus() {
  const main = useRef<HTMLElement>(null);
  const section = useRouterState({ select: (state) => state.resolvedLocation?.pathname.split("/")[1] });
  const previous = useRef(section);
  useEffect(() => {
    if (previous.current !== undefined && previous.current !== section) main.current?.focus();
    previous.current = section;
  }, [section]);
  return main;
}
