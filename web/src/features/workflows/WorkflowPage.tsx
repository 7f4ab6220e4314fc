// One workflow: its draft.

import { getRouteApi, Link } from "@tanstack/react-router";
import { NotLoaded } from "../../design/feedback/NotLoaded.tsx";
import { PageHeader } from "../../design/layout/PageHeader.tsx";
import { useWorkflow } from "./queries.ts";

const route = getRouteApi("/signed-in/workflows/$workflowId");

export function WorkflowPage() {
  const { workflowId } = route.useParams();
  const workflow = useWorkflow(workflowId);
  if (!workflow.data) {
    return (
      <>
        <PageHeader title="Workflow" />
        <NotLoaded
          noun="workflow"
          query={workflow}
          explanation="It does not exist, was deleted, or you have no access to it. If it belongs to another of your organizations, switch to that one first."
        />
      </>
    );
  }
  return (
    <>
      <PageHeader
        title={workflow.data.name}
        above={
          <Link to="/workflows" className="rounded-sm hover:underline">
            Workflows
          </Link>
        }
      />
      <pre className="overflow-x-auto font-mono text-sm">{workflow.data.source}</pre>
    </>
  );
}
