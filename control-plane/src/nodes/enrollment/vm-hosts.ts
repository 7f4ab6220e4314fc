// Registration of VM hosts, which is enrollment with a bootstrap token by a machine that runs VMs. Its name is the id of a host record,
// and its values have minimums: hosts get 401 for their token, 404 for their id, 422 for a value.

import { ApiError } from "@holdfast/contracts/errors";
import type { HostFacts } from "@holdfast/contracts/node/protocol";
import { VM_HOST } from "@holdfast/contracts/node/vm-host-capability";
import { uuidv7 } from "@holdfast/kit/uuid";
import type { Tx } from "../../database/connect.ts";
import { isBacked } from "../../tokens/standing.ts";
import { nodeNameFrom } from "../directory/name.ts";
import { certificateOfKey } from "../identity/certificates.ts";
import type { Enrolled, KnownToken, Use, UsedToken } from "./token-use.ts";

/** Less runs no VM of any profile. */
const LEAST_RAM_MIB = 256;

type Request = { node_name?: string | undefined; facts: HostFacts };

const isVmHost = ({ facts }: Request) => facts.capabilities.includes(VM_HOST);

/** Throws host_values_invalid, which names the field as operators of VM hosts know it. */
export function checkHostValues(request: Request): void {
  if (!isVmHost(request)) return;
  const ramTotalMb = Math.floor(request.facts.memory_bytes / 1024 ** 2);
  if (ramTotalMb >= LEAST_RAM_MIB) return;
  const problem = `is ${ramTotalMb}, and must be at least ${LEAST_RAM_MIB}`;
  throw new ApiError("host_values_invalid", {
    message: `The host cannot be registered: ram_total_mb ${problem}.`,
    details: { fields: [{ field: "ram_total_mb", problem }] },
  });
}

type Found = { usable: boolean; token_name: string | null; named_id: string | null };

/**
 * What a VM host gets that is not the host of its token. Undefined: it is, or the usual checks decide. Throws host_unknown, unless
 * unknown hosts may register: then it becomes a node of its own, and the token stays what it was.
 */
export async function registerUnknownHost(
  tx: Tx,
  known: KnownToken,
  request: Request,
  options: { allowed: boolean; use: Use },
): Promise<{ token: UsedToken } | { again: Enrolled } | undefined> {
  if (!isVmHost(request) || known.kind !== "bootstrap" || request.node_name === undefined) return undefined;
  const name = nodeNameFrom(request.node_name);
  const [found] = await tx<Found[]>`
    SELECT t.revoked_at IS NULL AND t.expires_at > now() AND ${isBacked(tx, "enrollment_token")} AS usable,
      coalesce((SELECT n.name FROM nodes n WHERE n.id = t.node_id), t.node_name) AS token_name,
      (SELECT n.id FROM nodes n WHERE n.org_id = t.org_id AND n.name = ${name} AND n.status <> 'retired') AS named_id
    FROM enrollment_tokens t WHERE t.id = ${known.id}`;
  if (!found?.usable || found.token_name === name || name === known.node_id) return undefined;
  if (found.named_id !== null) {
    const certificate = options.allowed
      ? await certificateOfKey(tx, found.named_id, options.use.keySha256)
      : undefined;
    // The response to its registration was lost.
    if (!certificate?.good) return undefined;
    return { again: { nodeId: found.named_id, orgId: known.org_id, name, certificate } };
  }
  if (!options.allowed)
    throw new ApiError("host_unknown", {
      message: `There is no host record with the id ${name}.`,
      details: { host_id: name },
    });
  const { id, org_id } = known;
  // As a pairing token makes a node: with the name of the machine.
  return { token: { id, org_id, kind: "pairing", node_name: null, enrolled_node_id: uuidv7(), makes_node: true } };
}
