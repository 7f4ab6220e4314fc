// Tests one step of a draft: a run of a document with that step and stand-ins for those before it. It is kept like a version, so that the
// run can be read later, and never published.

import { testStep } from "@holdfast/contracts/endpoints/runs";
import { ApiError } from "@holdfast/contracts/errors";
import { readWorkflow } from "@holdfast/workflows/document/read";
import { stepTestOf } from "@holdfast/workflows/document/step-test";
import { writeWorkflow } from "@holdfast/workflows/document/write";
import type { ApiContext } from "../../api/context.ts";
import { orgRoute } from "../../api/route.ts";
import { holdsScope, nameOf } from "../../people/actor.ts";
import { insertTestDocument, selectWorkflow } from "../queries.ts";
import { toRun } from "./queries.ts";
import { requireRun, storeRun } from "./routes.ts";

export function testStepRoutes(api: ApiContext): void {
  orgRoute(api, testStep, async ({ tx, org, actor, params, body, touched, afterCommit, correlationId }) => {
    // A test is a run, of a document that nobody has published.
    if (!holdsScope(actor, org.role, "workflows:run")) {
      throw new ApiError("forbidden", { details: { needed: "workflows:run", role: org.role } });
    }
    const workflow = await selectWorkflow(tx, { id: params.workflow_id }, { lock: true });
    if (!workflow) throw new ApiError("not_found");
    const draft = readWorkflow(body.source);
    if (!draft.ok) {
      throw new ApiError("workflow_invalid", {
        message: `The document has problems: ${draft.problems[0]?.message}`,
        details: { problems: draft.problems },
      });
    }
    const test = stepTestOf(draft.document, body.node, body.outputs);
    if (typeof test === "string") throw new ApiError("step_not_testable", { message: test });
    const source = writeWorkflow(test, "yaml");
    const version = await insertTestDocument(tx, workflow, { source, by: nameOf(actor) });
    const id = await storeRun(api, tx, { workflow, version, input: body.input, org, actor, correlationId });
    touched({ type: "run", id, name: workflow.name }, { workflow_id: workflow.id, node: body.node });
    afterCommit(() => api.signals.publish("workflow_run", [id]));
    return toRun(await requireRun(tx, id));
  });
}
