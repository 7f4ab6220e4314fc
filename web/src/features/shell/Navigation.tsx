// The navigation itself, the same on the left and in the drawer.

import { type AnyRoute, Link, type LinkProps, useRouter } from "@tanstack/react-router";
import { Icon, type IconName } from "../../design/controls/Icon.tsx";
import { Wordmark } from "../../design/layout/Logo.tsx";
import { AccountMenu } from "./AccountMenu.tsx";
import { OrganizationSwitcher } from "./OrganizationSwitcher.tsx";

type Entry = { to: LinkProps["to"]; label: string; icon: IconName };

/** Every route declares its own entry (`router.tsx`). */
function useMenu(): Entry[] {
  const routes: AnyRoute[] = Object.values(useRouter().routesById);
  return routes.flatMap(({ fullPath, options }) => {
    const menu = options.staticData?.menu;
    return menu ? [{ ...menu, to: fullPath as LinkProps["to"] }] : [];
  });
}

export function Navigation({ onNavigate }: { onNavigate?: () => void }) {
  return (
    <div className="flex h-full flex-col overflow-y-auto px-3 py-4">
      <Link
        to="/"
        className="mb-4 self-start rounded-sm px-2"
        onClick={onNavigate}
        aria-label="Holdfast, overview"
      >
        <Wordmark />
      </Link>
      <OrganizationSwitcher />
      <nav aria-label="Main" className="mt-4">
        <ul className="space-y-0.5">
          {useMenu().map((page) => (
            <li key={page.label}>
              <NavigationLink {...page} onNavigate={onNavigate} />
            </li>
          ))}
        </ul>
      </nav>
      <div className="mt-auto space-y-0.5 border-t border-deep-line pt-3">
        <NavigationLink to="/reference" label="API reference" icon="reference" onNavigate={onNavigate} />
        <AccountMenu />
      </div>
    </div>
  );
}

type NavigationLinkProps = Entry & { onNavigate?: () => void };

function NavigationLink({ to, label, icon, onNavigate }: NavigationLinkProps) {
  return (
    <Link
      to={to}
      onClick={onNavigate}
      activeOptions={{ exact: to === "/", includeSearch: false }}
      className="flex h-9 items-center gap-3 rounded-md px-2.5 text-on-deep-muted transition-colors hover:bg-deep-hover hover:text-on-deep"
      activeProps={{ className: "bg-deep-hover !text-on-deep font-medium shadow-[inset_2px_0_0_var(--glow)]" }}
    >
      <Icon name={icon} />
      {label}
    </Link>
  );
}
