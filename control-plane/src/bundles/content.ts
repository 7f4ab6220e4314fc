// What is in a recovery bundle: everything that a connection of the node depends on, as it is now. Signed by the root, so
// that a host can verify it without a connection.

import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { RecoveryBundle } from "@holdfast/contracts/node/recovery-bundle";
import type { EnvironmentProfile } from "@holdfast/contracts/node/trust";
import { BUNDLE_LINE_PREFIX } from "@holdfast/contracts/secrets";
import { packLine } from "@holdfast/kit/packed-line";
import type { AgentRelease } from "../agent-release/release.ts";
import type { NodeServices } from "../api/context.ts";
import type { Authority } from "../identity/authority.ts";
import type { BundleRow, KnownState } from "./queries.ts";

/** Of the format. */
const VERSION = 1;

const unit = fileURLToPath(new URL("../../../deploy/systemd/holdfast-agent.service", import.meta.url));
/** Where the installer puts them. */
const UNIT_PATH = "/etc/systemd/system/holdfast-agent.service";
const ENV_PATH = "/etc/holdfast/agent.env";
/** As the installer writes it. */
const EMPTY_ENV = `# Settings of this machine's agent, one NAME=value a line; docs/reference/settings.md lists them. After a change:
# systemctl restart holdfast-agent
`;
/** Settings of a host that would take precedence over what the bundle brings, with their other names. */
const overriding = [
  ...["HOLDFAST_NODE_API_URL", "GPUAAS_API_URL", "NODE_AGENT_CONTROL_PLANE_URL"],
  ...["HOLDFAST_NODE_TERMINAL_URL", "GPUAAS_TERMINAL_API_URL"],
  ...["HOLDFAST_RECOVERY_API_URL", "GPUAAS_RECOVERY_API_URL"],
  ...["HOLDFAST_RECOVERY_CA_BUNDLE_PATH", "GPUAAS_RECOVERY_CA_BUNDLE_PATH"],
  ...["HOLDFAST_RECOVERY_TOKEN", "HOLDFAST_ENROLLMENT_TOKEN", "GPUAAS_ENROLLMENT_TOKEN"],
];

type Parts = {
  row: BundleRow;
  orgId: string;
  secret: string;
  known: KnownState | undefined;
  profile: EnvironmentProfile;
  release: AgentRelease | undefined;
};

export function signedBundle(
  nodes: Pick<NodeServices, "keys" | "apiUrl">,
  authority: Authority,
  { row, orgId, secret, known, profile, release }: Parts,
): RecoveryBundle {
  const keySet = nodes.keys.keySet();
  return authority.signAsRoot({
    kind: "recovery_bundle" as const,
    version: VERSION,
    content: {
      bundle_id: row.id,
      seq: row.seq,
      node: { id: row.node_id, org_id: orgId, name: row.node_name },
      issued_at: row.created_at.toISOString(),
      issued_by: row.creator_name,
      expires_at: row.expires_at.toISOString(),
      correlation_id: row.correlation_id,
      incident_id: known?.incident_id ?? null,
      token: secret,
      api_url: nodes.apiUrl(),
      profile,
      trust_bundle: { version: authority.bundleVersion, roots: [...authority.trustBundle] },
      key_set: { version: keySet.version, ...keySet.content },
      agent: release
        ? {
            version: release.version,
            archives: release.archives.map(({ arch, file, sha256 }) => ({ arch, file, sha256 })),
          }
        : null,
      files: {
        unit: { path: UNIT_PATH, content: readFileSync(unit, "utf8") },
        env: { path: ENV_PATH, content: EMPTY_ENV, unset: overriding },
      },
      before: { ...stateBefore(known), hostname: known?.hostname ?? null },
      after: {
        profile: { name: profile.name, version: profile.version },
        key_set: keySet.version,
        trust_bundle: authority.bundleVersion,
      },
    },
  });
}

function stateBefore(known: KnownState | undefined): Omit<RecoveryBundle["content"]["before"], "hostname"> {
  const { profile_name: name, profile_version: version, key_set, trust_bundle } = known ?? {};
  return {
    profile: name && version ? { name, version } : null,
    key_set: key_set ?? 0,
    trust_bundle: trust_bundle ?? 0,
  };
}

/** It carries the digest of the root, like an enrollment token: a host whose roots are all stale can verify it. */
export function lineOf(bundle: RecoveryBundle, { rootDigest }: Pick<Authority, "rootDigest">): string {
  return packLine(BUNDLE_LINE_PREFIX, rootDigest, JSON.stringify(bundle));
}
