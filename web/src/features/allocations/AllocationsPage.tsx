// Allocations. There is no endpoint for them yet, and the page says so instead of pretending.

import { EmptyState } from "../../design/EmptyState.tsx";
import { Icon } from "../../design/Icon.tsx";
import { PageHeader } from "../../design/PageHeader.tsx";
import { MeanwhileLinks } from "../nodes/MeanwhileLinks.tsx";

export function AllocationsPage() {
  return (
    <>
      <PageHeader title="Allocations">Shares of machines that people and projects hold.</PageHeader>
      <EmptyState icon={<Icon name="allocations" />} title="No allocations yet" actions={<MeanwhileLinks />}>
        <p>
          An allocation is a tenant's share of a node: a user with a terminal, or a VM with its part of the GPUs.
          It belongs to a project. Allocations arrive in a release after nodes, because each needs one to live on.
        </p>
        <p>Until then, set up who will hold them:</p>
      </EmptyState>
    </>
  );
}
