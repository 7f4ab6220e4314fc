// Enables or disables a controller.

import {
  disableJenkinsController,
  enableJenkinsController,
  type JenkinsController,
} from "@holdfast/contracts/endpoints/jenkins";
import { Button } from "../../design/controls/Button.tsx";
import { ErrorNotice } from "../../design/feedback/ErrorNotice.tsx";
import { useActing } from "../../session.ts";
import { useChange } from "../../use-change.ts";

export function EnableController({ controller }: { controller: JenkinsController }) {
  const { may } = useActing();
  const { id, name, enabled } = controller;
  const change = useChange({
    send: (call) =>
      call(enabled ? disableJenkinsController : enableJenkinsController, { params: { controller_id: id } }),
  });
  if (!may("leases:write")) return null;
  return (
    <>
      <Button onClick={() => change.mutate("")} busy={change.isPending}>
        {enabled ? "Disable" : "Enable"}
        <span className="sr-only"> {name}</span>
      </Button>
      {change.error && <ErrorNotice key={change.submittedAt} error={change.error} />}
    </>
  );
}
