// For people who belong to no organization, or no longer to one.

import { Outlet, useRouterState } from "@tanstack/react-router";
import { Icon } from "../../design/controls/Icon.tsx";
import { EmptyState } from "../../design/feedback/EmptyState.tsx";
import { PageHeader } from "../../design/layout/PageHeader.tsx";
import { useMe } from "../../session.ts";

export function NoOrganization() {
  const me = useMe();
  const path = useRouterState({ select: (state) => state.location.pathname });
  if (path === "/account") return <Outlet />;
  return (
    <>
      <PageHeader title="No organization" />
      <EmptyState icon={<Icon name="organization" />} title="You are not a member of any organization">
        {me.operator ? (
          <p>Create one: open the organization menu in the navigation and choose “New organization”.</p>
        ) : (
          <p>Ask an owner or admin to invite {me.email ?? "you"}, then open the link they send you.</p>
        )}
      </EmptyState>
    </>
  );
}
