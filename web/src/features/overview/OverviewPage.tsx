// The start page: first steps, the state of the platform, and recent activity.

import { PageHeader } from "../../design/layout/PageHeader.tsx";
import { useActing, useMe } from "../../session.ts";
import { FirstSteps } from "./FirstSteps.tsx";
import { NodesCard } from "./NodesCard.tsx";
import { PlatformCard } from "./PlatformCard.tsx";
import { RecentActivity } from "./RecentActivity.tsx";

export function OverviewPage() {
  const me = useMe();
  const { may } = useActing();
  return (
    <>
      <PageHeader title="Overview" />
      <div className="grid grid-cols-[minmax(0,1fr)] items-start gap-6 xl:grid-cols-[minmax(0,3fr)_minmax(0,2fr)]">
        <FirstSteps />
        <div className="grid grid-cols-[minmax(0,1fr)] gap-6">
          <NodesCard />
          {me.operator && <PlatformCard />}
          {may("audit:read") && <RecentActivity />}
        </div>
      </div>
    </>
  );
}
