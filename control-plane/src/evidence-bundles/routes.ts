// Evidence bundles over HTTP. Whoever may diagnose nodes may create one, of what they may see.

import {
  createEvidence,
  downloadEvidence,
  type EvidenceBundle,
  listEvidence,
  listEvidenceKeys,
} from "@holdfast/contracts/endpoints/evidence";
import { ApiError } from "@holdfast/contracts/errors";
import { uuidv7 } from "@holdfast/kit/uuid";
import { version } from "@holdfast/service/version";
import type { ApiContext } from "../api/context.ts";
import { pageStart, toPage } from "../api/page.ts";
import { orgRoute, publicRoute } from "../api/route.ts";
import { auditActor } from "../audit/record.ts";
import { withOrg } from "../database/connect.ts";
import { readPlatform } from "../drift/evidence/platform.ts";
import { readEvidence } from "../drift/evidence/read.ts";
import { viewerOf } from "../drift/trace/routes.ts";
import type { Gathered } from "../logs/ask.ts";
import { visibleLogs } from "../logs/routes.ts";
import { buildBundle } from "./build.ts";
import { type BundleRow, insertBundle, selectBundle, selectBundles } from "./queries.ts";
import { redactionOf } from "./redaction.ts";
import { fileNameOf, findSubject, loggedIds, loggedSubject, type Subject } from "./subject.ts";

const LOG_LINES = 1_000;

export function evidenceRoutes(api: ApiContext): void {
  orgRoute<typeof createEvidence, { subject: Subject; logs: Gathered }>(
    api,
    createEvidence,
    async (call) => {
      const { tx, org, actor, correlationId, touched } = call;
      const { subject, logs } = call.waited;
      const { actor_name: creatorName } = auditActor(actor, org.role);
      const [{ now } = { now: new Date() }] = await tx<{ now: Date }[]>`SELECT now() AS now`;
      const evidence = await readEvidence(tx, subject.nodeIds, await readPlatform(api.system));
      const id = uuidv7();
      const about = {
        ...{ bundle_id: id, installation_id: api.installationId, org_id: org.id, holdfast_version: version },
        ...{ created_at: now.toISOString(), created_by: creatorName, correlation_id: correlationId },
      };
      const redact = redactionOf(api.own.secrets);
      // Before anything is made of them: in a sentence, the name of a field no longer says what its value is.
      const lines = logs.lines.map((line) => ({ ...line, content: redact(line.content) }));
      const context = {
        ...{ tx, subject, viewer: viewerOf(call), logs: { ...logs, lines } },
        ...{ evidence, policy: api.policy, profile: await api.nodes.profile(), now },
      };
      const built = await buildBundle(context, about, { signer: api.evidence, redact });
      const row = await insertBundle(tx, { id, orgId: org.id, subject, creatorName, correlationId, ...built });
      const { type, id: subjectId, name } = subject;
      touched(
        { type: type === "correlation" ? "correlation_id" : type, id: subjectId, name },
        { evidence_id: id, sha256: built.sha256, bytes: built.archive.length },
      );
      return { ...present(row), replicas: logs.replicas };
    },
    {
      waitFirst: async (call) => {
        const { actor, org, body } = call;
        const known = await withOrg(api.app, org.id, (tx) => findSubject(tx, body.subject_id, viewerOf(call)));
        const subject = known ?? loggedSubject(body.subject_id);
        const asked = { ids: loggedIds(subject), since: null, until: null, limit: LOG_LINES };
        const logs = await visibleLogs(api, { actor, orgId: org.id }, asked);
        if (!known && logs.lines.length === 0) throw new ApiError("not_found");
        return { subject, logs };
      },
    },
  );

  orgRoute(api, listEvidence, async ({ tx, query: { limit, cursor, subject_id: subjectId } }) => {
    const rows = await selectBundles(tx, { before: pageStart(listEvidence, cursor), limit, subjectId });
    return toPage(listEvidence, rows, { limit, idOf: ({ id }) => id, toItem: present });
  });

  orgRoute(api, downloadEvidence, async ({ tx, params, touched }) => {
    const row = await selectBundle(tx, params.evidence_id);
    if (!row) throw new ApiError("not_found");
    const { subject_type: type, subject_id: id, subject_name: name, content } = row;
    touched(
      { type: type === "correlation" ? "correlation_id" : type, id, name },
      { evidence_id: row.id, sha256: row.sha256 },
    );
    return { ...present(row), content: content.toString("base64") };
  });

  publicRoute(api, listEvidenceKeys, async () => ({ keys: [api.evidence.key] }));
}

function present(row: BundleRow): EvidenceBundle {
  const { id, subject_type: type, subject_id, subject_name, bytes, files, sha256, creator_name, created_at } = row;
  return {
    ...{
      id,
      subject: { type, id: subject_id, name: subject_name },
      bytes,
      files,
      sha256,
      created_by: creator_name,
    },
    file_name: fileNameOf({ type, id: subject_id }, created_at),
    ...{ created_at: created_at.toISOString(), expires_at: row.expires_at.toISOString() },
  };
}
