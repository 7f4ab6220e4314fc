// Nodes. There is no endpoint for them yet, and the page says so instead of pretending.

import { EmptyState } from "../../design/EmptyState.tsx";
import { Icon } from "../../design/Icon.tsx";
import { PageHeader } from "../../design/PageHeader.tsx";
import { useActing } from "../../session.ts";
import { MeanwhileLinks } from "./MeanwhileLinks.tsx";

export function NodesPage() {
  const { org } = useActing();
  return (
    <>
      <PageHeader title="Nodes">The machines that {org.name} runs on.</PageHeader>
      <EmptyState icon={<Icon name="nodes" />} title="No nodes yet" actions={<MeanwhileLinks />}>
        <p>
          A node joins by a small agent that dials out, so you open no port for it. Joining arrives with the next
          release.
        </p>
        <p>
          Then this page lists each machine with its state, and when one cannot be reached it names the hop that
          failed, whose it is, and the repair.
        </p>
        <p>Until then, prepare what joining will need:</p>
      </EmptyState>
    </>
  );
}
