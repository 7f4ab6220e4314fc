// Who the node is: a certificate that the server does not accept, or never receives.

import { X509Certificate } from "node:crypto";
import { cpSync, mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { createEnrollmentToken } from "@holdfast/contracts/endpoints/enrollment";
import { getNode } from "@holdfast/contracts/endpoints/nodes";
import type { Fault } from "../../faults/fault.ts";
import { oldCertificate } from "../../faults/identity.ts";
import { nameLeadsToPublicEdge } from "../../faults/public-edge.ts";
import type { Lab } from "../../lab/lab.ts";
import type { Drill, DrillScene } from "../drill.ts";
import { agentLog, cell, endpointProfile, hop } from "./cells.ts";
import { edgeLab } from "./labs.ts";
import { isSilent, nodeOffline } from "./link.ts";

const common = { labName: "identity", lab: { gateway: true }, user: "terminal" } as const;

const rejected = {
  user: nodeOffline,
  page: { hop: "node_recovery_status", signal: "node_agent_auth_failed" },
  preflight: {
    ...{ failed_hop: "node_recovery_status", symptom_hop: "node_heartbeat" },
    ...{ signal: "node_agent_auth_failed", owner: "node_enrollment" },
  },
} as const;

/**
 * Of the certificate on the host, and whether it is the one that the server has on record, and valid. A heartbeat that met the new
 * enrollment may have made the replaced one the last that was used: it is revoked then.
 */
async function certificate({ lab }: DrillScene): Promise<string> {
  const { serialNumber, subjectAltName } = new X509Certificate(await identityOf(lab));
  const { certificate: known } = await lab.control.operator(getNode, { params: { node_id: lab.node.id } });
  const isSame = known?.revoked_at === null && BigInt(`0x${known.serial}`) === BigInt(`0x${serialNumber}`);
  return `${isSame ? "on record" : "not on record"}: serial ${serialNumber}, ${subjectAltName}`;
}

const identityOf = ({ node }: Lab) => node.host.run("cat", join(node.stateDir, "identity.pem"));

/** A refusal since the fault, as the api logged it. */
const refusedByApi = (is: RegExp) =>
  cell(is, ({ lab, brokenAt }) => {
    const line = lab.control
      .lines()
      .find(({ msg, time }) => /^refused a .*request/.test(msg ?? "") && Date.parse(String(time)) >= brokenAt);
    return `${line?.msg}: ${line?.reason}`;
  });

const staleEvidence = {
  "M3: API auth response": refusedByApi(/^refused a node's request: certificate_replaced$/),
  "M3: node-agent auth logs": agentLog(/^auth_failed$/, /HTTP 40[13] certificate_replaced/),
  "M3: cert serial/SAN": cell(/^not on record: serial [0-9A-F]+, .*URI:/, certificate),
  "M3: profile URL": endpointProfile,
};

const accepted = {
  "M3: node recovery status returns healthy": hop(
    ...(["after", "node_recovery_status"] as const),
    /^passed from node: agent runs, identity usable$/,
  ),
};

export const agentCertificateStale: Drill = {
  ...common,
  name: "certificate-stale",
  title: "the agent starts with a certificate that the server has replaced",
  rows: [{ row: "M3", variant: "stale certificate" }],
  fault: oldCertificate,
  takesEffect: isSilent("auth_failed"),
  expect: rejected,
  before: staleEvidence,
  after: { ...accepted, "the new certificate": cell(/^on record: serial [0-9A-F]+, /, certificate) },
};

/** The node has enrolled again, and its agent runs on with the certificate of before. */
function rotatedElsewhere(lab: Lab): Fault {
  const { node } = lab;
  const other = join(lab.directory, "rotated");
  return {
    what: "the node gets a new certificate, which does not arrive where its agent keeps it",
    async inject() {
      const { token, api_url } = await lab.control.operator(createEnrollmentToken, { body: { node_id: node.id } });
      mkdirSync(other, { mode: 0o700 });
      const env = { HOLDFAST_ENROLLMENT_TOKEN: token, HOLDFAST_AGENT_STATE_DIR: other };
      await node.holdfast(["join", "--api", api_url], env);
    },
    async repair() {
      for (const file of ["agent.json", "trust.pem", "identity.pem"]) {
        cpSync(join(other, file), join(node.stateDir, file));
      }
      rmSync(other, { recursive: true, force: true });
    },
  };
}

export const certificateRotated: Drill = {
  ...common,
  name: "certificate-rotated-while-running",
  title: "the node's certificate is rotated while its agent runs, and the new one does not reach the agent",
  rows: [{ row: "L7" }],
  fault: rotatedElsewhere,
  takesEffect: isSilent("auth_failed"),
  expect: rejected,
  before: { "the certificate in use": cell(/^not on record: serial [0-9A-F]+, /, certificate) },
  after: {
    "the certificate that the running agent took over": cell(/^on record: serial [0-9A-F]+, /, certificate),
    "the agent was not restarted": cell(/^started before the fault$/, async ({ lab, brokenAt }) => {
      const { agent_started_at } = await lab.control.operator(getNode, { params: { node_id: lab.node.id } });
      const isOlder = agent_started_at !== null && Date.parse(agent_started_at) < brokenAt;
      return isOlder ? "started before the fault" : `started at ${agent_started_at}`;
    }),
  },
};

export const publicEdge: Drill = {
  ...edgeLab,
  name: "api-behind-public-edge",
  title: "the agent is led to a public edge, which no node's certificate passes",
  rows: [{ row: "M3", variant: "public edge" }],
  fault: nameLeadsToPublicEdge,
  takesEffect: isSilent("edge_terminates_tls"),
  // Its certificate is valid and was never rejected: the specification's D07 masks `node_agent_auth_failed`.
  expect: {
    user: nodeOffline,
    page: { hop: "node_runtime_api_reachability", signal: "endpoint_profile_drift" },
    preflight: {
      ...{ failed_hop: "node_runtime_api_reachability", symptom_hop: "node_heartbeat" },
      ...{ signal: "endpoint_profile_drift", owner: "endpoint_profile" },
    },
  },
  before: {
    "M3: API auth response": refusedByApi(/^refused a request without a node's certificate: certificate_missing$/),
    "M3: node-agent auth logs": agentLog(/^edge_terminates_tls$/, /HTTP 401 certificate_missing/),
    "M3: cert serial/SAN": cell(/^on record: serial [0-9A-F]+, .*URI:/, certificate),
    "M3: profile URL": endpointProfile,
  },
  after: accepted,
};
