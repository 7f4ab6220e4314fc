// Decides whether an offered task is accepted, and loads what that needs: newer keys, and the type's code. The decision
// itself is in verify.ts.

import type { TaskOffer } from "@holdfast/contracts/node/protocol";
import type { CommonFailure } from "@holdfast/contracts/node/task-failures";
import type { VerifierKeyring } from "@holdfast/kit/detached-jws";
import type { Host } from "@holdfast/tasks/executor";
import type { Log } from "../log.ts";
import { describe } from "./outcomes.ts";
import type { LoadedType } from "./run.ts";
import { judgeContent, judgeOrigin } from "./verify.ts";

export type AdmissionOptions = {
  nodeId: string;
  /** Undefined: unknown type. */
  loadType: (name: string) => Promise<LoadedType | undefined>;
  verifiers: () => VerifierKeyring;
  /** Requests the current keys from the server; never rejects. */
  refreshVerifiers: () => Promise<void>;
  host: () => Host;
  now: () => number;
  skewSeconds: () => number | undefined;
  log: Log;
};

export type Admitted = { type: LoadedType; params: unknown; secrets: Record<string, string> };

/** Never rejects. */
export type Admit = (offer: TaskOffer) => Promise<Admitted | { refused: CommonFailure }>;

export function createAdmission(options: AdmissionOptions): Admit {
  const judgeNow = () => ({
    nodeId: options.nodeId,
    verifiers: options.verifiers(),
    now: options.now(),
    skewSeconds: options.skewSeconds(),
  });

  const judge = async (offer: TaskOffer): Promise<Admitted | { refused: CommonFailure }> => {
    let refused = judgeOrigin(offer, judgeNow());
    if (refused === "task_key_unknown") {
      await options.refreshVerifiers();
      refused = judgeOrigin(offer, judgeNow());
    }
    if (refused !== undefined) return { refused };
    const type = await options.loadType(offer.task_type);
    const content = judgeContent(offer, type?.contract, options.host().capabilities);
    if ("refused" in content) return content;
    return type ? { type, ...content } : { refused: "task_type_unknown" };
  };

  return async (offer) => {
    try {
      return await judge(offer);
    } catch (error) {
      // A type that cannot be loaded is one this agent does not have.
      options.log.error("could not verify a task", { task_id: offer.task_id, error: describe(error) });
      return { refused: "task_type_unknown" };
    }
  };
}
