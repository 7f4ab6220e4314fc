// Who is signed in, and in which organization they act. The organization is chosen per tab; the last
// choice is remembered for new tabs.

import type { Client } from "@holdfast/contracts/client";
import { getMe, type Me } from "@holdfast/contracts/endpoints/me";
import { type Scope, scopesOfRole } from "@holdfast/contracts/public/permissions";
import { queryOptions, useQuery, useSuspenseQuery } from "@tanstack/react-query";
import { useMemo, useSyncExternalStore } from "react";
import { call, callIn } from "./api.ts";

export type Membership = Me["organizations"][number];

export const meQuery = queryOptions({
  queryKey: ["me"],
  queryFn: ({ signal }) => call(getMe, { signal }),
  staleTime: 60_000,
});

export function useMe(): Me {
  return useSuspenseQuery(meQuery).data;
}

const storedAs = "holdfast.organization";
const listeners = new Set<() => void>();
let chosen = recallOrganization();

function recallOrganization(): string | null {
  try {
    return sessionStorage.getItem(storedAs) ?? localStorage.getItem(storedAs);
  } catch {
    return null;
  }
}

export function chooseOrganization(id: string): void {
  chosen = id;
  try {
    sessionStorage.setItem(storedAs, id);
    localStorage.setItem(storedAs, id);
  } catch {
    // Without storage the choice lasts until the page is left.
  }
  for (const listener of listeners) listener();
}

function subscribe(listener: () => void) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** The remembered one if it is still theirs; else one they belong to, before those they only operate. */
export function pickOrganization(
  memberships: readonly Membership[],
  remembered: string | null,
): Membership | undefined {
  return (
    memberships.find((each) => each.id === remembered) ??
    memberships.find((each) => each.role !== "operator") ??
    memberships[0]
  );
}

export function useMembership(): Membership | undefined {
  const remembered = useSyncExternalStore(subscribe, () => chosen);
  return pickOrganization(useMe().organizations, remembered);
}

export type Acting = { org: Membership; call: Client; may: (scope: Scope) => boolean };

/** Below the shell, which shows another page to people without any organization. */
export function useActing(): Acting {
  const org = useMembership();
  if (!org) throw new Error("no organization to act in");
  return useMemo(() => ({ org, call: callIn(org.id), may: (scope) => scopesOfRole[org.role].has(scope) }), [org]);
}

/** For what is also shown to people who are not signed in: they may nothing. Reads only what is known already. */
export function useMayIfSignedIn(): (scope: Scope) => boolean {
  const remembered = useSyncExternalStore(subscribe, () => chosen);
  const { data } = useQuery({ ...meQuery, enabled: false });
  const org = data && pickOrganization(data.organizations, remembered);
  return (scope) => org !== undefined && scopesOfRole[org.role].has(scope);
}
