// The decision which of two machines keeps the node. What both of them have is revoked first, so that from then on neither
// is the node; the one that is kept enrolls with a new key.

import { resolveClone } from "@holdfast/contracts/endpoints/nodes";
import { ApiError } from "@holdfast/contracts/errors";
import type { ApiContext } from "../../api/context.ts";
import { orgRoute } from "../../api/route.ts";
import type { Tx } from "../../database/connect.ts";
import { classify } from "../../drift/classify/classify.ts";
import { readPlatform } from "../../drift/evidence/platform.ts";
import { readEvidence } from "../../drift/evidence/read.ts";
import { recordObservationsIn, timeAfterOthers } from "../../drift/evidence/write.ts";
import { selectNode } from "../directory/queries.ts";
import { issueToken } from "../enrollment/issue-token.ts";
import { selectClone } from "./present.ts";
import { revokeSharedCredentials } from "./shared-credentials.ts";

export function cloneRoutes(api: ApiContext): void {
  const isCloned = async (tx: Tx, nodeId: string, now: Date) => {
    const evidence = await readEvidence(tx, [nodeId], await readPlatform(api.system));
    const { causes } = classify(evidence.get(nodeId) ?? [], api.policy, now.getTime());
    return causes.some(({ reason }) => reason === "cloned_identity_detected");
  };

  orgRoute(api, resolveClone, async (call) => {
    const { tx, params, body, correlationId } = call;
    const node = await selectNode(tx, params.node_id);
    if (!node) throw new ApiError("not_found");
    const { id, name, read_at: now } = node;
    const clone = (await isCloned(tx, id, now)) ? await selectClone(tx, id) : null;
    if (!clone) {
      throw new ApiError("node_change_refused", {
        message: `${name} is not used by two machines, as far as is known.`,
        nextStep: `See what is known: \`holdfast node explain ${name}\`.`,
      });
    }
    const kept = clone.instances.find(({ holder }) => holder === body.keep);
    if (!kept) {
      const allowed = clone.instances.map(({ holder }) => holder).join(" or ");
      throw new ApiError("invalid_request", {
        details: { fields: [{ field: "keep", problem: `must be ${allowed}` }] },
      });
    }
    // Both go on sending heartbeats meanwhile: what they prove until now is decided.
    const observedAt = await timeAfterOthers(tx, id);
    const changed = await recordObservationsIn(tx, [
      {
        ...{ nodeId: id, kind: "instances", value: "one", observer: "operator", observedAt, correlationId },
        detail: { kept: kept.instance_id, holder: kept.holder },
      },
    ]);
    // After the evidence, as everywhere: it refers to the node, which is locked from here on.
    const revoked = await revokeSharedCredentials(tx, id);
    const token = await issueToken(api, call, { kind: "pairing", nodeId: id, nodeName: null });
    const others = clone.instances.filter((one) => one !== kept);
    call.touched(
      { type: "node", id, name },
      { kept, to_be_reimaged: others, revoked_serials: revoked.revokedSerials, token_id: token.id },
    );
    call.afterCommit(() => {
      api.nodes.directory.changed(revoked);
      api.signals.publish("evidence", changed);
    });
    return token;
  });
}
