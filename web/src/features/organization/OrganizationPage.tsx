// The organization: its projects, people, tokens, notifications and name, one tab each with its own address.

import { Link, Outlet } from "@tanstack/react-router";
import { PageHeader } from "../../design/layout/PageHeader.tsx";
import { useActing } from "../../session.ts";

const tabs = [
  { to: "/organization/projects", label: "Projects" },
  { to: "/organization/members", label: "Members" },
  { to: "/organization/tokens", label: "API tokens" },
  { to: "/organization/notifications", label: "Notifications" },
  { to: "/organization/settings", label: "Settings" },
] as const;

export function OrganizationPage() {
  const { org } = useActing();
  return (
    <>
      <PageHeader title="Organization">
        {org.name} · <span className="font-mono text-sm">{org.slug}</span>
      </PageHeader>
      <nav aria-label="Organization" className="mb-6 overflow-x-auto border-b border-line">
        <ul className="flex gap-6">
          {tabs.map((tab) => (
            <li key={tab.to}>
              <Link
                to={tab.to}
                className="-mb-px block border-b-2 border-transparent py-2.5 whitespace-nowrap text-ink-muted outline-offset-[-2px] hover:text-ink"
                activeProps={{ className: "!border-kelp font-medium !text-ink" }}
              >
                {tab.label}
              </Link>
            </li>
          ))}
        </ul>
      </nav>
      <Outlet />
    </>
  );
}
