// What used a secret: workflows, and the executions that got it last.

import type { Secret } from "@holdfast/contracts/endpoints/secrets";
import { Link } from "@tanstack/react-router";
import { Dialog } from "../../design/dialogs/Dialog.tsx";
import { ErrorNotice } from "../../design/feedback/ErrorNotice.tsx";
import { Loading } from "../../design/feedback/Loading.tsx";
import { Cell, Table } from "../../design/lists/Table.tsx";
import { When } from "../../design/values/When.tsx";
import { useSecret } from "./queries.ts";

export function UsedByDialog({ secret, onClose }: { secret: Secret; onClose: () => void }) {
  const { data, error, refetch } = useSecret(secret.id);
  return (
    <Dialog
      open
      onClose={onClose}
      place="sheet"
      title={secret.name}
      description={`Version ${secret.version}, for steps of ${secret.members_may_use ? "all members" : "owners and admins"}`}
    >
      {error && <ErrorNotice error={error} onRetry={() => void refetch()} />}
      {!data && !error && <Loading what="its uses" />}
      {data?.uses === 0 && <p className="text-ink-muted">No execution that is kept used it.</p>}
      {data && data.uses > 0 && (
        <div className="space-y-6">
          <Table label="Workflows" columns={["Workflow", "Executions", "Last used"]}>
            {data.used_by.workflows.map((one) => (
              <tr key={one.workflow_id}>
                <Cell className="[overflow-wrap:anywhere]">{one.workflow_id}</Cell>
                <Cell className="tabular-nums">{one.uses}</Cell>
                <Cell>
                  <When at={one.last_used_at} />
                </Cell>
              </tr>
            ))}
          </Table>
          <Table label="Executions" columns={["Execution", "Version", "Used"]}>
            {data.used_by.executions.map((one) => (
              <tr key={one.id}>
                <Cell className="[overflow-wrap:anywhere]">
                  <Link
                    to="/executions/$executionId"
                    params={{ executionId: one.id }}
                    className="rounded-sm font-medium hover:underline"
                  >
                    {one.request_id}
                  </Link>
                </Cell>
                <Cell className="tabular-nums">{one.version}</Cell>
                <Cell>
                  <When at={one.used_at} />
                </Cell>
              </tr>
            ))}
          </Table>
        </div>
      )}
    </Dialog>
  );
}
