// Finds a workflow by its name or id.

import type { Client } from "@holdfast/contracts/client";
import { listWorkflows, type Workflow } from "@holdfast/contracts/endpoints/workflows";
import { UsageError } from "@holdfast/kit/settings";
import { uuidForm } from "@holdfast/kit/uuid";

export async function findWorkflow(client: Client, wanted: string): Promise<Pick<Workflow, "id" | "name">> {
  if (uuidForm.test(wanted)) return { id: wanted, name: wanted };
  const { items } = await client(listWorkflows, { query: { name: wanted.slice(0, 40) } });
  const found = items.find(({ name }) => name === wanted);
  if (found) return found;
  throw new UsageError(
    `Workflow "${wanted}" not found, or you have no access. List workflows with \`holdfast workflow list\`.`,
  );
}
