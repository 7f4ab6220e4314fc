// Which process of which boot speaks for a node: two headers that every request of an agent has.

import type { IncomingHttpHeaders } from "node:http";
import { ApiError } from "@holdfast/contracts/errors";
import { BOOT_HEADER, INSTANCE_HEADER } from "@holdfast/contracts/node/limits";
import { uuidForm } from "@holdfast/kit/uuid";

export type Instance = { instanceId: string; bootId: string };

export function instanceOf({ [INSTANCE_HEADER]: instance, [BOOT_HEADER]: boot }: IncomingHttpHeaders): Instance {
  const instanceId = typeof instance === "string" ? instance.toLowerCase() : "";
  if (!uuidForm.test(instanceId)) throw headerProblem(INSTANCE_HEADER, "a UUID, one per process");
  if (typeof boot !== "string" || !/^[\x21-\x7e]{1,64}$/.test(boot)) {
    throw headerProblem(BOOT_HEADER, "1 to 64 printable ASCII characters, one per boot of the machine");
  }
  return { instanceId, bootId: boot };
}

function headerProblem(field: string, problem: string): ApiError {
  return new ApiError("invalid_request", { details: { fields: [{ field, problem }] } });
}
