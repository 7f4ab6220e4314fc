// The published versions: what differs from the draft, and a way back.

import type { Workflow } from "@holdfast/contracts/endpoints/workflows";
import { useState } from "react";
import { Button } from "../../../design/controls/Button.tsx";
import { Dialog, DialogActions } from "../../../design/dialogs/Dialog.tsx";
import { ErrorNotice } from "../../../design/feedback/ErrorNotice.tsx";
import { Loading } from "../../../design/feedback/Loading.tsx";
import { SelectField } from "../../../design/forms/Field.tsx";
import { exactTime } from "../../../design/values/time.ts";
import { useVersion, useVersions } from "../queries.ts";
import { LineDiff } from "./LineDiff.tsx";

type VersionsProps = {
  workflow: Workflow;
  text: string;
  first: number | null;
  /** Left out: one may only look. */
  onUse?: (source: string) => void;
  onClose: () => void;
};

export function Versions({ workflow, text, first, onUse, onClose }: VersionsProps) {
  const [number, setNumber] = useState(first ?? workflow.published_version);
  const versions = useVersions(workflow.id);
  const shown = useVersion(workflow.id, number);
  const [other, setOther] = useState<number | null>(null);
  const compared = useVersion(workflow.id, other);
  const label = (one: { version: number; published_by: string; published_at: string }) =>
    `Version ${one.version}, ${exactTime(one.published_at)}, ${one.published_by}`;
  return (
    <Dialog open onClose={onClose} title="Versions" place="sheet" description="Published versions never change.">
      {versions.error && <ErrorNotice error={versions.error} />}
      {!versions.data && !versions.error && <Loading what="versions" />}
      {versions.data && (
        <div className="space-y-4">
          <SelectField
            label="Version"
            value={String(number)}
            onChange={(event) => setNumber(Number(event.currentTarget.value))}
          >
            {versions.data.map((one) => (
              <option key={one.version} value={one.version}>
                {label(one)}
              </option>
            ))}
          </SelectField>
          <SelectField
            label="Compared with"
            value={String(other ?? "")}
            onChange={(event) =>
              setOther(event.currentTarget.value === "" ? null : Number(event.currentTarget.value))
            }
          >
            <option value="">The draft, as it is in the editor</option>
            {versions.data
              .filter((one) => one.version !== number)
              .map((one) => (
                <option key={one.version} value={one.version}>
                  {label(one)}
                </option>
              ))}
          </SelectField>
          {shown.data && (other === null || compared.data) && (
            <LineDiff
              label="Differences"
              before={shown.data.source}
              after={other === null ? text : (compared.data?.source ?? "")}
            />
          )}
          {onUse && shown.data && (
            <DialogActions>
              <Button onClick={() => onUse(shown.data.source)}>Put version {number} into the draft</Button>
            </DialogActions>
          )}
        </div>
      )}
    </Dialog>
  );
}
