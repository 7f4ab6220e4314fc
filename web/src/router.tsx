// Every page and its address. Pages behind sign-in share the shell, or have the window to themselves; each
// feature loads on its own.

import { codeOf } from "@holdfast/contracts/client";
import type { QueryClient } from "@tanstack/react-query";
import {
  createRootRouteWithContext,
  createRoute,
  createRouter,
  lazyRouteComponent,
  redirect,
} from "@tanstack/react-router";
import { untilReached } from "./connection.ts";
import type { IconName } from "./design/controls/Icon.tsx";
import { allocationFiltersFromSearch } from "./features/allocations/filters.ts";
import { auditFiltersFromSearch } from "./features/audit/filters.ts";
import { executionFiltersFromSearch } from "./features/executions/filters.ts";
import { leaseFiltersFromSearch } from "./features/leases/filters.ts";
import { nodeFiltersFromSearch } from "./features/nodes/filters.ts";
import { runFiltersFromSearch } from "./features/runs/filters.ts";
import { FullWindow } from "./features/shell/FullWindow.tsx";
import { Fault, NotFound, Root } from "./features/shell/Root.tsx";
import { Shell } from "./features/shell/Shell.tsx";
import { returnPath } from "./features/sign-in/return-path.ts";
import { sessionFromSearch } from "./features/terminal/session-search.ts";
import { createQueryClient } from "./query-client.ts";
import { meQuery } from "./session.ts";

export const queryClient = createQueryClient({ onSignedOut: askToSignIn });

/**
 * Code that could not be loaded because the server was unreachable is loaded again when it is back. If it is
 * missing on a server that answers, there is a new release, and the router reloads the page.
 */
function lazyPage<Module extends Record<string, unknown>>(
  load: () => Promise<Module>,
  name: keyof Module & string,
) {
  return lazyRouteComponent(
    () =>
      load().catch(async () => {
        await untilReached();
        return load();
      }),
    name,
  );
}

type Context = { queryClient: QueryClient };

const root = createRootRouteWithContext<Context>()({
  component: Root,
  notFoundComponent: NotFound,
  errorComponent: Fault,
});

const signIn = createRoute({
  getParentRoute: () => root,
  path: "/sign-in",
  validateSearch: (search): { to?: string } => (search["to"] ? { to: returnPath(search["to"]) } : {}),
  component: lazyPage(() => import("./features/sign-in/SignInPage.tsx"), "SignInPage"),
});

const link = createRoute({
  getParentRoute: () => root,
  path: "/link",
  component: lazyPage(() => import("./features/links/LinkPage.tsx"), "LinkPage"),
});

const reference = createRoute({
  getParentRoute: () => root,
  path: "/reference",
  component: lazyPage(() => import("./features/reference/ReferencePage.tsx"), "ReferencePage"),
});

async function requireSignIn({ context, location }: { context: Context; location: { href: string } }) {
  try {
    await context.queryClient.ensureQueryData(meQuery);
  } catch (error) {
    if (codeOf(error) !== "unauthenticated") throw error;
    throw redirect({ to: "/sign-in", search: location.href === "/" ? {} : { to: location.href } });
  }
}

const signedIn = createRoute({
  getParentRoute: () => root,
  id: "signed-in",
  beforeLoad: requireSignIn,
  component: Shell,
});

const fullWindow = createRoute({
  getParentRoute: () => root,
  id: "full-window",
  beforeLoad: requireSignIn,
  component: FullWindow,
});

const overview = createRoute({
  getParentRoute: () => signedIn,
  path: "/",
  staticData: { menu: { label: "Overview", icon: "overview" } },
  component: lazyPage(() => import("./features/overview/OverviewPage.tsx"), "OverviewPage"),
});

const nodes = createRoute({
  getParentRoute: () => signedIn,
  path: "/nodes",
  staticData: { menu: { label: "Nodes", icon: "nodes" } },
  validateSearch: nodeFiltersFromSearch,
  component: lazyPage(() => import("./features/nodes/NodesPage.tsx"), "NodesPage"),
});

const node = createRoute({
  getParentRoute: () => signedIn,
  path: "/nodes/$nodeId",
  component: lazyPage(() => import("./features/nodes/NodePage.tsx"), "NodePage"),
});

const hosts = createRoute({
  getParentRoute: () => signedIn,
  path: "/hosts",
  staticData: { menu: { label: "Hosts", icon: "hosts" } },
  component: lazyPage(() => import("./features/hosts/HostsPage.tsx"), "HostsPage"),
});

/** The address that operators of VM hosts know. */
const hostsByOldAddress = createRoute({
  getParentRoute: () => signedIn,
  path: "/ui",
  beforeLoad: () => {
    throw redirect({ to: "/hosts", replace: true });
  },
});

const leases = createRoute({
  getParentRoute: () => signedIn,
  path: "/leases",
  staticData: { menu: { label: "Leases", icon: "leases" } },
  validateSearch: leaseFiltersFromSearch,
  component: lazyPage(() => import("./features/leases/LeasesPage.tsx"), "LeasesPage"),
});

const lease = createRoute({
  getParentRoute: () => signedIn,
  path: "/leases/$leaseId",
  component: lazyPage(() => import("./features/leases/LeasePage.tsx"), "LeasePage"),
});

const controllers = createRoute({
  getParentRoute: () => signedIn,
  path: "/jenkins",
  staticData: { menu: { label: "Jenkins", icon: "jenkins" } },
  component: lazyPage(() => import("./features/jenkins/ControllersPage.tsx"), "ControllersPage"),
});

const controller = createRoute({
  getParentRoute: () => signedIn,
  path: "/jenkins/$controllerId",
  component: lazyPage(() => import("./features/jenkins/ControllerPage.tsx"), "ControllerPage"),
});

const task = createRoute({
  getParentRoute: () => signedIn,
  path: "/tasks/$taskId",
  component: lazyPage(() => import("./features/tasks/TaskPage.tsx"), "TaskPage"),
});

const trace = createRoute({
  getParentRoute: () => signedIn,
  path: "/trace/$traceId",
  component: lazyPage(() => import("./features/trace/TracePage.tsx"), "TracePage"),
});

const allocations = createRoute({
  getParentRoute: () => signedIn,
  path: "/allocations",
  staticData: { menu: { label: "Allocations", icon: "allocations" } },
  validateSearch: allocationFiltersFromSearch,
  component: lazyPage(() => import("./features/allocations/AllocationsPage.tsx"), "AllocationsPage"),
});

const allocation = createRoute({
  getParentRoute: () => signedIn,
  path: "/allocations/$allocationId",
  component: lazyPage(() => import("./features/allocations/AllocationPage.tsx"), "AllocationPage"),
});

const myTerminals = createRoute({
  getParentRoute: () => signedIn,
  path: "/terminals",
  staticData: { menu: { label: "My terminals", icon: "terminal" } },
  component: lazyPage(() => import("./features/terminal/MyTerminalsPage.tsx"), "MyTerminalsPage"),
});

const terminal = createRoute({
  getParentRoute: () => fullWindow,
  path: "/allocations/$allocationId/terminal",
  validateSearch: sessionFromSearch,
  component: lazyPage(() => import("./features/terminal/TerminalPage.tsx"), "TerminalPage"),
});

const vmConsole = createRoute({
  getParentRoute: () => fullWindow,
  path: "/leases/$leaseId/console",
  validateSearch: sessionFromSearch,
  component: lazyPage(() => import("./features/terminal/ConsolePage.tsx"), "ConsolePage"),
});

const workflows = createRoute({
  getParentRoute: () => signedIn,
  path: "/workflows",
  staticData: { menu: { label: "Workflows", icon: "workflows" } },
  component: lazyPage(() => import("./features/workflows/WorkflowsPage.tsx"), "WorkflowsPage"),
});

const workflow = createRoute({
  getParentRoute: () => signedIn,
  path: "/workflows/$workflowId",
  validateSearch: (search): { version?: string } =>
    /^[1-9][0-9]*$/.test(String(search["version"])) ? { version: String(search["version"]) } : {},
  component: lazyPage(() => import("./features/workflows/WorkflowPage.tsx"), "WorkflowPage"),
});

const runs = createRoute({
  getParentRoute: () => signedIn,
  path: "/runs",
  staticData: { menu: { label: "Runs", icon: "runs" } },
  validateSearch: runFiltersFromSearch,
  component: lazyPage(() => import("./features/runs/RunsPage.tsx"), "RunsPage"),
});

const run = createRoute({
  getParentRoute: () => signedIn,
  path: "/runs/$runId",
  component: lazyPage(() => import("./features/runs/RunPage.tsx"), "RunPage"),
});

const agents = createRoute({
  getParentRoute: () => signedIn,
  path: "/agents",
  staticData: { menu: { label: "Agents", icon: "agents" } },
  component: lazyPage(() => import("./features/agents/AgentsPage.tsx"), "AgentsPage"),
});

const executions = createRoute({
  getParentRoute: () => signedIn,
  path: "/executions",
  staticData: { menu: { label: "Executions", icon: "executions" } },
  validateSearch: executionFiltersFromSearch,
  component: lazyPage(() => import("./features/executions/ExecutionsPage.tsx"), "ExecutionsPage"),
});

const execution = createRoute({
  getParentRoute: () => signedIn,
  path: "/executions/$executionId",
  component: lazyPage(() => import("./features/executions/ExecutionPage.tsx"), "ExecutionPage"),
});

const secrets = createRoute({
  getParentRoute: () => signedIn,
  path: "/secrets",
  staticData: { menu: { label: "Secrets", icon: "secrets" } },
  component: lazyPage(() => import("./features/secrets/SecretsPage.tsx"), "SecretsPage"),
});

const audit = createRoute({
  getParentRoute: () => signedIn,
  path: "/audit",
  staticData: { menu: { label: "Audit", icon: "audit" } },
  validateSearch: auditFiltersFromSearch,
  component: lazyPage(() => import("./features/audit/AuditPage.tsx"), "AuditPage"),
});

const backgroundJobs = createRoute({
  getParentRoute: () => signedIn,
  path: "/platform/background-jobs",
  component: lazyPage(() => import("./features/platform/BackgroundJobsPage.tsx"), "BackgroundJobsPage"),
});

const account = createRoute({
  getParentRoute: () => signedIn,
  path: "/account",
  component: lazyPage(() => import("./features/account/AccountPage.tsx"), "AccountPage"),
});

const organization = createRoute({
  getParentRoute: () => signedIn,
  path: "/organization",
  staticData: { menu: { label: "Organization", icon: "organization" } },
  component: lazyPage(() => import("./features/organization/OrganizationPage.tsx"), "OrganizationPage"),
});

const organizationStart = createRoute({
  getParentRoute: () => organization,
  path: "/",
  beforeLoad: () => {
    throw redirect({ to: "/organization/projects", replace: true });
  },
});

const projects = createRoute({
  getParentRoute: () => organization,
  path: "/projects",
  component: lazyPage(() => import("./features/organization/ProjectsTab.tsx"), "ProjectsTab"),
});

const members = createRoute({
  getParentRoute: () => organization,
  path: "/members",
  component: lazyPage(() => import("./features/organization/MembersTab.tsx"), "MembersTab"),
});

const tokens = createRoute({
  getParentRoute: () => organization,
  path: "/tokens",
  component: lazyPage(() => import("./features/organization/TokensTab.tsx"), "TokensTab"),
});

const notifications = createRoute({
  getParentRoute: () => organization,
  path: "/notifications",
  component: lazyPage(() => import("./features/notify/NotificationsTab.tsx"), "NotificationsTab"),
});

const settings = createRoute({
  getParentRoute: () => organization,
  path: "/settings",
  component: lazyPage(() => import("./features/organization/SettingsTab.tsx"), "SettingsTab"),
});

export const router = createRouter({
  routeTree: root.addChildren([
    signIn,
    link,
    reference,
    signedIn.addChildren([
      overview,
      nodes,
      node,
      hosts,
      hostsByOldAddress,
      leases,
      lease,
      controllers,
      controller,
      task,
      trace,
      allocations,
      allocation,
      myTerminals,
      workflows,
      workflow,
      runs,
      run,
      agents,
      executions,
      execution,
      secrets,
      audit,
      backgroundJobs,
      account,
      organization.addChildren([organizationStart, projects, members, tokens, notifications, settings]),
    ]),
    fullWindow.addChildren([terminal, vmConsole]),
  ]),
  context: { queryClient },
  defaultPreload: "intent",
  scrollRestoration: true,
  // Plain strings, so that `correlation_id=123` stays what a person typed.
  parseSearch: (text) => Object.fromEntries(new URLSearchParams(text)),
  stringifySearch: (search) => {
    const given = Object.entries(search).filter(([, value]) => value !== undefined && value !== "");
    const text = new URLSearchParams(given.map(([name, value]) => [name, String(value)])).toString();
    return text && `?${text}`;
  },
});

const withoutSession = new Set(["/sign-in", "/link", "/reference"]);

/**
 * A session can end at any time; the person comes back to where they were. By a full load: nothing of
 * the ended session stays in memory, and a click at the same moment cannot overtake it.
 */
function askToSignIn(): void {
  const { pathname, href } = router.state.location;
  if (withoutSession.has(pathname)) return;
  window.location.assign(`/sign-in?${new URLSearchParams({ to: returnPath(href) })}`);
}

declare module "@tanstack/react-router" {
  interface Register {
    router: typeof router;
  }
  interface StaticDataRouteOption {
    /** The page's entry in the main menu, in the order of the routes. */
    menu?: { label: string; icon: IconName };
  }
}
