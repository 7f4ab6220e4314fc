// Jenkins controllers over HTTP. API tokens come in here and never go out.

import type { AnswerOf } from "@holdfast/contracts/endpoint";
import {
  addJenkinsController,
  checkJenkinsController,
  disableJenkinsController,
  enableJenkinsController,
  getJenkinsController,
  listJenkinsControllers,
  MOST_CONTROLLERS,
  removeJenkinsController,
  setJenkinsToken,
} from "@holdfast/contracts/endpoints/jenkins";
import { ApiError } from "@holdfast/contracts/errors";
import { uuidv7 } from "@holdfast/kit/uuid";
import type { ApiContext } from "../api/context.ts";
import { orgRoute } from "../api/route.ts";
import { auditActor } from "../audit/record.ts";
import type { Tx } from "../database/connect.ts";
import { selectLabels } from "../leases/queries.ts";
import { applyEvents } from "../leases/transitions/apply.ts";
import { type Limit, takeAttempt } from "../mechanisms/rate-limit.ts";
import { AddressRefused, parseWebhookUrl, resolveAllowed } from "../notify/send/addresses.ts";
import { nameOf } from "../people/actor.ts";
import { presentBuild, selectOpenBuilds, selectRecentBuilds } from "./builds/queries.ts";
import { JenkinsFailure, problemOf } from "./client/failure.ts";
import {
  type ControllerRow,
  countControllers,
  deleteController,
  insertController,
  lockController,
  presentController,
  selectControllers,
  selectForCheck,
  setEnabled,
  setToken,
} from "./controllers.ts";

/** Of an organization: a check sends requests to an address that somebody else may own. */
const checks: Limit = { attempts: 60, windowSeconds: 15 * 60 };

export function jenkinsRoutes(api: ApiContext): void {
  const { jenkins } = api;
  const results = new WeakMap<object, Checked>();
  const changed = (id: string) => api.signals.publish("jenkins", [id]);

  orgRoute(api, listJenkinsControllers, async ({ tx }) => ({
    items: (await selectControllers(tx)).map(presentController),
  }));

  orgRoute(
    api,
    getJenkinsController,
    async ({ tx, params }) => {
      const row = await requireController(tx, params.controller_id);
      const recent = (await selectRecentBuilds(tx, row.id)).map(presentBuild);
      return { ...presentController(row), queue: row.queue, recent };
    },
    { oneMoment: true },
  );

  orgRoute(
    api,
    addJenkinsController,
    async ({ tx, org, actor, body, touched, afterCommit }) => {
      if ((await countControllers(tx, org.id)) >= MOST_CONTROLLERS) throw tooMany();
      await refuseUnknownLabels(tx, body.labels);
      const controller = { id: uuidv7(), url: baseOf(body.url) };
      const added = await insertController(tx, {
        ...{ ...controller, orgId: org.id, name: body.name, user: body.user, labels: body.labels },
        sealedToken: jenkins.vault.seal(controller, body.api_token),
        ...{ mostLeases: body.max_leases, burst: body.burst, cooldownSeconds: body.cooldown_seconds },
        ...{ connectSeconds: body.connect_seconds, creatorName: nameOf(actor) },
      });
      if (!added) throw new ApiError("name_taken", { message: `A controller ${body.name} exists already.` });
      const { url } = controller;
      touched({ type: "jenkins_controller", id: controller.id, name: body.name }, { url, user: body.user });
      afterCommit(() => changed(controller.id));
      return presentController(await requireController(tx, controller.id));
    },
    {
      // Resolving a name takes time, and needs no transaction.
      waitFirst: ({ body }) =>
        refusedAddress(() => resolveAllowed(parseWebhookUrl(baseOf(body.url)), jenkins.allowance)),
    },
  );

  orgRoute(
    api,
    checkJenkinsController,
    async ({ tx, params, touched }) => {
      const { id, name } = await requireController(tx, params.controller_id);
      const result = results.get(params);
      if (!result) throw new ApiError("not_found");
      touched({ type: "jenkins_controller", id, name }, { usable: result.usable });
      return result;
    },
    {
      // Requests to a controller take time, and no transaction waits for them.
      waitFirst: async ({ params, org }) => {
        await takeAttempt(api.system, checks, "jenkins.check", org.id);
        const result = await check(api, { id: params.controller_id, orgId: org.id });
        if (result) results.set(params, result);
      },
    },
  );

  for (const [endpoint, enabled] of [
    [enableJenkinsController, true],
    [disableJenkinsController, false],
  ] as const) {
    orgRoute(api, endpoint, async ({ tx, params, touched, afterCommit }) => {
      const id = params.controller_id;
      if (!(await setEnabled(tx, id, enabled))) throw new ApiError("not_found");
      const row = await requireController(tx, id);
      touched({ type: "jenkins_controller", id, name: row.name });
      afterCommit(() => changed(id));
      return presentController(row);
    });
  }

  orgRoute(api, setJenkinsToken, async ({ tx, params, body, touched, afterCommit }) => {
    const id = params.controller_id;
    const { name, url } = await requireController(tx, id);
    await setToken(tx, id, jenkins.vault.seal({ id, url }, body.api_token));
    touched({ type: "jenkins_controller", id, name });
    afterCommit(() => changed(id));
    return presentController(await requireController(tx, id));
  });

  orgRoute(api, removeJenkinsController, async ({ tx, params, query, org, actor, touched, afterCommit }) => {
    const id = params.controller_id;
    if (!(await lockController(tx, id))) throw new ApiError("not_found");
    const { name } = await requireController(tx, id);
    const open = await selectOpenBuilds(tx, id);
    if (open.length > 0 && query.force !== "true") {
      throw new ApiError("jenkins_controller_in_use", {
        message: `${open.length} builds of the controller ${name} have VMs.`,
        details: { builds: open.map(({ task, node_name }) => ({ task, node: node_name })) },
      });
    }
    const leased = open.filter(({ lease_status }) => lease_status !== null);
    await applyEvents(
      tx,
      leased.map(({ lease_id: leaseId }) => ({
        leaseId,
        vmId: null,
        event: "terminate",
        message: `Its controller ${name} was removed.`,
      })),
      auditActor(actor, org.role),
    );
    await deleteController(tx, id);
    touched({ type: "jenkins_controller", id, name }, { builds: open.length });
    afterCommit(() => {
      for (const { lease_id } of leased) api.leases.changed(lease_id, undefined);
    });
    return undefined;
  });
}

type Checked = AnswerOf<typeof checkJenkinsController>;

/** Undefined: there is no such controller. */
async function check(
  { system, jenkins }: Pick<ApiContext, "system" | "jenkins">,
  which: { id: string; orgId: string },
): Promise<Checked | undefined> {
  const row = await selectForCheck(system, which);
  if (!row) return undefined;
  const { id, url, user_name: user, sealed_token } = row;
  try {
    const client = await jenkins.connect({ url, user, token: jenkins.vault.open({ id, url }, sealed_token) });
    const version = await client.version();
    const queued = (await client.queue()).length;
    const nodes = (await client.nodes()).length;
    await client.checkCrumb();
    return { usable: true, version, queued, nodes, problem: null };
  } catch (error) {
    if (!(error instanceof JenkinsFailure)) throw error;
    return { usable: false, version: null, queued: null, nodes: null, problem: problemOf(error, row.name) };
  }
}

/** With a slash at its end, so that paths are appended to it. */
function baseOf(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (!url) throw new ApiError("jenkins_address_refused", { message: "This is not a URL." });
  url.search = "";
  url.hash = "";
  return url.href.endsWith("/") ? url.href : `${url.href}/`;
}

async function refusedAddress(work: () => Promise<unknown>): Promise<void> {
  try {
    await work();
  } catch (error) {
    if (error instanceof AddressRefused) throw new ApiError("jenkins_address_refused", { message: error.message });
    throw new ApiError("jenkins_address_refused", { message: "The name in the URL cannot be resolved." });
  }
}

async function refuseUnknownLabels(tx: Tx, policies: readonly { lease_label: string }[]): Promise<void> {
  const known = (await selectLabels(tx)).map(({ label }) => label);
  const unknown = policies.find(({ lease_label }) => !known.includes(lease_label));
  if (!unknown) return;
  throw new ApiError("lease_label_unknown", {
    message: `The label ${unknown.lease_label} of leases does not exist.`,
    details: { label: unknown.lease_label, labels: known },
  });
}

async function requireController(tx: Tx, id: string): Promise<ControllerRow> {
  const [row] = await selectControllers(tx, id);
  if (!row) throw new ApiError("not_found");
  return row;
}

function tooMany(): ApiError {
  return new ApiError("conflict", {
    message: `An organization has at most ${MOST_CONTROLLERS} Jenkins controllers.`,
    nextStep: "Remove one that is no longer used.",
  });
}
