// Which organization a command acts in: the one that the person named, else the one signed in to,
// else the only one there is.

import type { Client } from "@holdfast/contracts/client";
import type { Me } from "@holdfast/contracts/endpoints/me";
import { listOrganizations } from "@holdfast/contracts/endpoints/organizations";
import { UsageError } from "@holdfast/kit/settings";
import { everyPage } from "./pages.ts";

export type Choice = Pick<Me["organizations"][number], "id" | "slug" | "role">;

/** `client` belongs to no organization yet. Undefined when there is none to choose. */
export async function chooseOrganization(
  client: Client,
  me: Pick<Me, "organizations">,
  { wanted, signedInTo }: { wanted?: string; signedInTo?: string },
): Promise<Choice | undefined> {
  const { organizations } = me;
  if (wanted !== undefined) {
    const found = await find(client, organizations, wanted);
    if (!found)
      throw new UsageError(`Organization "${wanted}" not found, or you have no access. ${listed(organizations)}`);
    return found;
  }
  const kept = organizations.find((one) => one.id === signedInTo);
  if (kept) return kept;
  const [only, another] = organizations;
  if (another) throw new UsageError(`Choose an organization with --org. ${listed(organizations)}`);
  return only;
}

async function find(client: Client, organizations: Choice[], wanted: string): Promise<Choice | undefined> {
  const isWanted = (one: { id: string; slug: string }) => one.slug === wanted || one.id === wanted;
  const own = organizations.find(isWanted);
  if (own) return own;
  // An operator may act in all organizations; only the first few hundred are returned.
  const all = await everyPage((cursor) => client(listOrganizations, { query: { cursor, limit: 200 } }));
  const found = all.find(isWanted);
  return found && { id: found.id, slug: found.slug, role: "operator" };
}

const mostListed = 20;

function listed(organizations: { slug: string }[]): string {
  if (organizations.length === 0) return "You are not a member of any organization.";
  const names = organizations.slice(0, mostListed).map((one) => one.slug);
  const rest = organizations.length > mostListed ? " and more; list all with `holdfast org list`" : "";
  return `Organizations: ${names.join(", ")}${rest}.`;
}
