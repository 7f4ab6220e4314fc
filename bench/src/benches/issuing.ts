// What a node's certificate costs the api, from the request to the PEM, in processor time: all nodes of a fleet renew
// within hours, and join within minutes after an outage. Beside it, the same with an X.509 library.

import { temporaryAuthority } from "@holdfast/control-plane/identity/authority";
import { readKeyRequest } from "@holdfast/control-plane/identity/requests";
import { certificateRequest, newPrivateKey } from "@holdfast/kit/certificate-request";
import { uuidv7 } from "@holdfast/kit/uuid";
import type { Bench, Measured } from "../bench.ts";
import { type Issue, issueByLibrary } from "../peers/x509-library.ts";

const EACH = 300;
const figure = "processor time of one certificate";

export const issuing: Bench = {
  name: "issuing",
  summary: "a node's certificate from its request, in processor time",
  figures: [
    {
      ...{ name: figure, unit: "ms", better: "lower", peer: "@peculiar/x509 with WebCrypto" },
      target: { of: "ratio", value: 0.2 },
    },
  ],
  passes: 9,
  prepare: async () => {
    const authority = temporaryAuthority(new Date());
    const requests = Array.from({ length: EACH }, () => certificateRequest(newPrivateKey(), "bench"));
    const theirs = await issueByLibrary();
    const ours: Issue = async (csr, id) => {
      const { publicKey } = readKeyRequest(csr);
      return authority.issueToNode({ id, publicKey }, new Date()).chain;
    };
    return { ours: () => measure(ours, requests), theirs: () => measure(theirs, requests) };
  },
};

async function measure(issue: Issue, requests: readonly string[]): Promise<Measured> {
  const before = process.cpuUsage();
  for (const csr of requests) await issue(csr, uuidv7());
  const { user, system } = process.cpuUsage(before);
  return { [figure]: (user + system) / 1000 / requests.length };
}
