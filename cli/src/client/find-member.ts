// Finds the member a person means: by email address, or by id.

import type { Client } from "@holdfast/contracts/client";
import { listMembers, type Member } from "@holdfast/contracts/endpoints/members";
import { Refusal } from "../failure.ts";
import { everyPage } from "./pages.ts";

export async function findMember(client: Client, wanted: string): Promise<Member> {
  const all = await everyPage((cursor) => client(listMembers, { query: { cursor, limit: 200 } }));
  const found = all.find(({ user_id, email }) => [user_id, email].includes(wanted.toLowerCase()));
  if (found) return found;
  throw new Refusal("not_found", {
    message: `Member "${wanted}" not found in this organization.`,
    nextStep: "List the members with `holdfast org members`; invite one with `holdfast org invite <email>`.",
  });
}
