// One workflow: the editor of its draft, its versions, and a way to run it.

import { codeOf } from "@holdfast/contracts/client";
import { getRouteApi, Link, useBlocker } from "@tanstack/react-router";
import { useState } from "react";
import { Button } from "../../design/controls/Button.tsx";
import { ConfirmDialog } from "../../design/dialogs/Dialog.tsx";
import { ErrorNotice } from "../../design/feedback/ErrorNotice.tsx";
import { NotLoaded } from "../../design/feedback/NotLoaded.tsx";
import { PageHeader } from "../../design/layout/PageHeader.tsx";
import { StatusMark } from "../../design/values/StatusMark.tsx";
import { useActing } from "../../session.ts";
import { LiveMark } from "../shell/LiveMark.tsx";
import { DraftState } from "./DraftState.tsx";
import { Conflict } from "./editor/Conflict.tsx";
import { Editor } from "./editor/Editor.tsx";
import { RunDialog } from "./editor/RunDialog.tsx";
import { type Draft, useDraft, type WorkflowDetail } from "./editor/use-draft.ts";
import { Versions } from "./editor/Versions.tsx";
import { useWorkflow } from "./queries.ts";

const route = getRouteApi("/signed-in/workflows/$workflowId");

export function WorkflowPage() {
  const { workflowId } = route.useParams();
  const workflow = useWorkflow(workflowId);
  if (workflow.data) return <Shown key={workflowId} workflow={workflow.data} />;
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

function Shown({ workflow }: { workflow: WorkflowDetail }) {
  const { may } = useActing();
  const { version } = route.useSearch();
  const navigate = route.useNavigate();
  const draft = useDraft(workflow);
  const [running, setRunning] = useState(false);
  const [versions, setVersions] = useState(version !== undefined);
  const mayWrite = may("workflows:write");
  const closeVersions = () => {
    setVersions(false);
    if (version !== undefined) void navigate({ search: {}, replace: true });
  };
  return (
    <>
      <PageHeader
        title={workflow.name}
        above={
          <Link to="/workflows" className="rounded-sm hover:underline">
            Workflows
          </Link>
        }
        actions={
          <>
            <Link
              to="/runs"
              search={{ workflow_id: workflow.id }}
              className="inline-flex h-9 items-center rounded-md px-3 font-medium text-kelp"
            >
              Runs
            </Link>
            {workflow.published_version !== null && (
              <Button look="quiet" onClick={() => setVersions(true)}>
                Versions
              </Button>
            )}
            {mayWrite && <DraftActions workflow={workflow} draft={draft} />}
            {may("workflows:run") && workflow.published_version !== null && (
              <Button look="primary" onClick={() => setRunning(true)}>
                Run
              </Button>
            )}
          </>
        }
      >
        <span className="flex flex-wrap items-baseline gap-x-4 gap-y-1" role="status">
          {workflow.published_version === null ? "Not published yet" : `Version ${workflow.published_version}`}
          {draft.isDirty ? (
            <StatusMark state="degraded">Not saved</StatusMark>
          ) : (
            <DraftState workflow={workflow} />
          )}
          <LiveMark />
        </span>
      </PageHeader>
      <SaveProblem draft={draft} />
      <Conflict draft={draft} />
      <Editor workflowId={workflow.id} text={draft.text} onChange={draft.setText} readOnly={!mayWrite} />
      {running && (
        <RunDialog
          workflow={workflow}
          hasUnpublished={draft.isDirty || workflow.changed_since_published}
          onClose={() => setRunning(false)}
        />
      )}
      {versions && (
        <Versions
          workflow={workflow}
          text={draft.text}
          first={version === undefined ? null : Number(version)}
          onClose={closeVersions}
          {...(mayWrite ? { onUse: draft.setText } : {})}
        />
      )}
      <LeavingDialog isDirty={draft.isDirty} />
    </>
  );
}

function DraftActions({ workflow, draft }: { workflow: WorkflowDetail; draft: Draft }) {
  const canPublish = draft.isDirty || workflow.changed_since_published;
  return (
    <>
      <Button disabled={!draft.isDirty} busy={draft.save.isPending} onClick={() => draft.save.mutate(undefined)}>
        Save draft
      </Button>
      <Button
        disabled={!canPublish}
        busy={draft.publish.isPending}
        onClick={() => draft.publish.mutate(undefined)}
      >
        {draft.isDirty ? "Save and publish" : "Publish"}
      </Button>
    </>
  );
}

/** Conflicts have a notice of their own. */
function SaveProblem({ draft }: { draft: Draft }) {
  const failed = [draft.save, draft.publish].find(
    ({ error }) => error && (codeOf(error) !== "workflow_changed" || !draft.conflict),
  );
  if (!failed?.error) return null;
  return (
    <div className="mb-4">
      <ErrorNotice key={failed.submittedAt} error={failed.error} />
    </div>
  );
}

function LeavingDialog({ isDirty }: { isDirty: boolean }) {
  const blocker = useBlocker({
    shouldBlockFn: ({ current, next }) => isDirty && current.pathname !== next.pathname,
    enableBeforeUnload: () => isDirty,
    withResolver: true,
  });
  return (
    <ConfirmDialog
      open={blocker.status === "blocked"}
      onClose={() => blocker.reset?.()}
      title="Leave without saving?"
      action="Discard changes"
      onConfirm={() => blocker.proceed?.()}
      busy={false}
      error={null}
    >
      <p>The changes of this draft are not saved.</p>
    </ConfirmDialog>
  );
}
