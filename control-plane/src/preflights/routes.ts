// Preflights over HTTP: run one here, hand in one from elsewhere, read them.

import {
  addPreflightReport,
  getPreflight,
  listPreflights,
  startPreflight,
} from "@holdfast/contracts/endpoints/preflights";
import { ApiError } from "@holdfast/contracts/errors";
import { PREFLIGHT_SCHEMA_PATH, preflightReportSchema } from "@holdfast/contracts/preflight/report";
import { uuidv7 } from "@holdfast/kit/uuid";
import { callerOf } from "../allocations/access.ts";
import { readAllocation } from "../allocations/read.ts";
import type { ApiContext } from "../api/context.ts";
import { pageStart, toPage } from "../api/page.ts";
import { orgRoute } from "../api/route.ts";
import type { Tx } from "../database/connect.ts";
import { recordObservationsIn } from "../drift/evidence/write.ts";
import { selectNode } from "../nodes/directory/queries.ts";
import { nameOf } from "../people/actor.ts";
import { clientInside } from "./inside.ts";
import { observationsOfPreflight } from "./observe.ts";
import { insertFinished, insertRunning, selectPreflight, selectPreflights, toPreflight } from "./queries.ts";
import { runHere } from "./run-here.ts";

export function preflightRoutes(api: ApiContext): void {
  orgRoute(api, startPreflight, async (call) => {
    const { params, body, org, actor, tx, touched, afterCommit, correlationId, baseUrl, address, onBehalf } = call;
    const node = await required(tx, params.node_id);
    const allocationId = body.allocation_id ?? null;
    if (allocationId !== null) await readAllocation(tx, callerOf(call), allocationId, "use");
    const id = uuidv7();
    const row = {
      id,
      org_id: org.id,
      node_id: node.id,
      allocation_id: allocationId,
      correlation_id: correlationId,
    };
    if (!(await insertRunning(tx, { ...row, run_from: "control_plane", runner_name: nameOf(actor) }))) {
      throw new ApiError("conflict", {
        message: "A preflight of this node is running.",
        nextStep: "Wait for it to finish; it takes less than a minute.",
      });
    }
    touched({ type: "node", id: node.id, name: node.name }, { preflight_id: id, allocation_id: allocationId });
    const client = clientInside(api.http, { headers: ofCaller(api, onBehalf()), orgId: org.id, address });
    afterCommit(() => {
      api.signals.publish("preflight", [id]);
      void runHere(api, { id, client, nodeId: node.id, allocationId, correlationId, apiUrl: baseUrl });
    });
    return read(tx, id);
  });

  orgRoute(api, addPreflightReport, async (call) => {
    const {
      body: { report },
      org,
      actor,
      tx,
      touched,
      afterCommit,
      correlationId,
    } = call;
    const node = await required(tx, report.node_id);
    if (report.allocation_id !== null) await readAllocation(tx, callerOf(call), report.allocation_id, "view");
    const id = uuidv7();
    const row = {
      ...{ id, org_id: org.id, node_id: node.id, allocation_id: report.allocation_id },
      ...{ runner_name: nameOf(actor), correlation_id: correlationId },
      run_from: "command_line" as const,
    };
    await insertFinished(tx, row, report);
    const changed = await recordObservationsIn(tx, observationsOfPreflight(report, new Date()));
    const { result, failed_hop } = report;
    touched({ type: "node", id: node.id, name: node.name }, { preflight_id: id, result, failed_hop });
    afterCommit(() => {
      api.signals.publish("preflight", [id]);
      api.signals.publish("evidence", changed);
    });
    return read(tx, id);
  });

  orgRoute(api, listPreflights, async ({ tx, query }) => {
    const before = pageStart(listPreflights, query.cursor);
    const rows = await selectPreflights(tx, query, { before, limit: query.limit });
    return toPage(listPreflights, rows, { limit: query.limit, idOf: ({ id }) => id, toItem: toPreflight });
  });

  orgRoute(api, getPreflight, async ({ tx, params }) => read(tx, params.preflight_id));

  // Public, as the description of the API is: whoever reads reports may check them.
  let schema: string | undefined;
  api.http.get(PREFLIGHT_SCHEMA_PATH, (_request, reply) => {
    schema ??= JSON.stringify(preflightReportSchema());
    return reply.type("application/schema+json; charset=utf-8").send(schema);
  });
}

/** The origin of this request was checked. Requests within the process have no TLS, so it is theirs from here on. */
function ofCaller({ publicUrl }: ApiContext, headers: Record<string, string>): Record<string, string> {
  if (headers["origin"] === undefined) return headers;
  return { ...headers, origin: publicUrl ?? `http://${headers["host"]}` };
}

async function required(tx: Tx, nodeId: string) {
  const node = await selectNode(tx, nodeId);
  if (!node) throw new ApiError("not_found");
  return node;
}

async function read(tx: Tx, id: string) {
  const row = await selectPreflight(tx, id);
  if (!row) throw new ApiError("not_found");
  return toPreflight(row);
}
