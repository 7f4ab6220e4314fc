// Continues a failed run where it failed: what has succeeded is not repeated. A later version may have the correction.

import { type Run, retryRun } from "@holdfast/contracts/endpoints/runs";
import { isStepTest } from "@holdfast/contracts/words/run-versions";
import { useState } from "react";
import { Button } from "../../design/controls/Button.tsx";
import { FormDialog } from "../../design/dialogs/FormDialog.tsx";
import { SelectField } from "../../design/forms/Field.tsx";
import { useActing } from "../../session.ts";
import { useChange } from "../../use-change.ts";
import { useVersions } from "../workflows/queries.ts";

export function RetryRun({ run }: { run: Run }) {
  const { may } = useActing();
  const [open, setOpen] = useState(false);
  if (run.status !== "failed" || isStepTest(run) || !may("workflows:run")) return null;
  return (
    <>
      <Button look="primary" onClick={() => setOpen(true)}>
        Retry
      </Button>
      {open && <RetryDialog run={run} onClose={() => setOpen(false)} />}
    </>
  );
}

function RetryDialog({ run, onClose }: { run: Run; onClose: () => void }) {
  const later = (useVersions(run.workflow_id).data ?? []).filter(({ version }) => version > run.version);
  const [chosen, setChosen] = useState<number | null>(null);
  const version = chosen ?? later[0]?.version ?? run.version;
  const retry = useChange({
    send: (call) =>
      call(retryRun, {
        params: { run_id: run.id },
        body: version === run.version ? {} : { version },
      }),
    onDone: onClose,
  });
  return (
    <FormDialog
      open
      onClose={onClose}
      title={`Retry the run of ${run.workflow_name}`}
      description="Failed steps get another attempt, and the run continues from there. Steps that have succeeded are not repeated."
      action="Retry"
      mutation={retry}
    >
      <SelectField
        label="Version"
        hint={
          later.length > 0
            ? "The newest version may have the correction."
            : "To change the steps, publish another version first."
        }
        value={version}
        onChange={(event) => setChosen(Number(event.currentTarget.value))}
      >
        {later.map((one) => (
          <option key={one.version} value={one.version}>
            Version {one.version}
          </option>
        ))}
        <option value={run.version}>Version {run.version}, as before</option>
      </SelectField>
    </FormDialog>
  );
}
