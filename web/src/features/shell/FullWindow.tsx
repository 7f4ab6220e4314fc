// The frame of pages that need all the room there is: behind sign-in, without the navigation.

import { Outlet } from "@tanstack/react-router";
import { Suspense } from "react";
import { Loading } from "../../design/feedback/Loading.tsx";
import { useLive } from "../../live.ts";
import { useMembership } from "../../session.ts";
import { NoOrganization } from "./NoOrganization.tsx";

export function FullWindow() {
  const org = useMembership();
  useLive(org?.id);
  return (
    <Suspense fallback={<Loading what="the page" />}>
      {org ? <Outlet key={org.id} /> : <NoOrganization />}
    </Suspense>
  );
}
