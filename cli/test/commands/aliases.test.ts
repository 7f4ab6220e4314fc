// The environment variables of the systems that Holdfast follows. Each is an alias of a setting, or is reported by name
// when it is set.

import { apiSettings } from "@holdfast/control-plane/api/settings";
import { workerSettings } from "@holdfast/control-plane/worker/settings";
import { gatewaySettings } from "@holdfast/gateway/settings";
import { unsupportedNames, warningsAboutUnsupported } from "@holdfast/kit/known-names";
import { readSettings, type Setting, type Settings } from "@holdfast/kit/settings";
import { executionSettings } from "@holdfast/node-agent/execution/settings";
import { agentSettings, joinSettings } from "@holdfast/node-agent/settings";
import { describe, expect, it } from "vitest";
import { clientSettings } from "../../src/client/settings.ts";
import { ingressSettings } from "../../src/ingress/settings.ts";
import { upSettings } from "../../src/up/settings.ts";

const known = [
  ...["GPUAAS_API_URL", "GPUAAS_TERMINAL_API_URL", "GPUAAS_ENROLLMENT_TOKEN", "GPUAAS_TASK_SIGNING_PUBKEYS"],
  ...["GPUAAS_RECOVERY_API_URL", "GPUAAS_RECOVERY_CA_BUNDLE_PATH"],
  ...["NODE_AGENT_HOST_ID", "NODE_AGENT_BOOTSTRAP_TOKEN", "NODE_AGENT_CONTROL_PLANE_URL"],
  ...["NODE_AGENT_ADVERTISE_ADDR", "NODE_AGENT_NETWORK_BACKEND", "NODE_AGENT_NETWORK_INTERFACE"],
  ...["NODE_AGENT_BASE_IMAGE_DIR", "NODE_AGENT_CLOUD_INIT_DIR", "NODE_AGENT_PIP_CONSTRAINT"],
  "ALLOW_UNKNOWN_HOST_REGISTRATION",
  ...["DATABASE_URL", "REDIS_URL", "SECRETS_KEK_ID", "SECRETS_KEK_BASE64"],
  ...["GATEWAY_HOST", "GATEWAY_PORT", "GATEWAY_LOG_LEVEL", "GATEWAY_AGENT_STALE_MS", "GATEWAY_AGENT_SELECTION"],
  ...["GATEWAY_SERVICE_TOKEN", "GATEWAY_HTTP_URL", "GATEWAY_WS_URL", "GATEWAY_RESULTS_TTL_SEC"],
  "NODE_EXEC_TIMEOUT_MS",
  ...["WORKFLOW_CONTINUATION_QUEUE_NAME", "WORKFLOW_CONTINUATION_POLL_MS", "WORKFLOW_CONTINUATION_CONCURRENCY"],
  ...["VESPID_AGENT_TLS_CA_FILE", "VESPID_AGENT_EXEC_BACKEND", "VESPID_AGENT_WORKDIR_ROOT"],
  ...["VESPID_AGENT_DOCKER_IMAGE", "VESPID_AGENT_DOCKER_NETWORK_DEFAULT", "VESPID_AGENT_DOCKER_TIMEOUT_MS"],
  ...["VESPID_AGENT_DOCKER_MEMORY_MB", "VESPID_AGENT_DOCKER_CPUS", "VESPID_AGENT_DOCKER_PIDS"],
  "VESPID_AGENT_DOCKER_OUTPUT_MAX_CHARS",
];

const processes: Settings[] = [
  ...[apiSettings, gatewaySettings, workerSettings, agentSettings, joinSettings, executionSettings],
  ...[clientSettings, ingressSettings, upSettings],
];
const declarations: Setting[] = processes.flatMap((settings) => Object.values(settings));
const settingsNamed = (alias: string) => declarations.filter(({ aliases }) => aliases.includes(alias));

/** A value other than the default for each supported alias, and what becomes of it. */
const examples: Record<string, [text: string, value: unknown]> = {
  DATABASE_URL: ["postgres://me:pw@db/holdfast", "postgres://me:pw@db/holdfast"],
  REDIS_URL: ["rediss://me:pw@redis:6380/1", "rediss://me:pw@redis:6380/1"],
  SECRETS_KEK_ID: ["2026", "2026"],
  SECRETS_KEK_BASE64: [Buffer.alloc(32, 9).toString("base64"), Buffer.alloc(32, 9)],
  GPUAAS_API_URL: ["https://holdfast.example.com:18442", "https://holdfast.example.com:18442"],
  GPUAAS_TERMINAL_API_URL: ["https://holdfast.example.com:18443", "https://holdfast.example.com:18443"],
  NODE_AGENT_CONTROL_PLANE_URL: ["https://holdfast.example.com", "https://holdfast.example.com"],
  NODE_AGENT_ADVERTISE_ADDR: ["10.0.0.7", "10.0.0.7"],
  GPUAAS_ENROLLMENT_TOKEN: ["hfe_x", "hfe_x"],
  GPUAAS_RECOVERY_API_URL: ["https://recovery.example.com", "https://recovery.example.com"],
  GPUAAS_RECOVERY_CA_BUNDLE_PATH: ["/etc/recovery.pem", "/etc/recovery.pem"],
  NODE_AGENT_BOOTSTRAP_TOKEN: ["hfb_x", "hfb_x"],
  NODE_AGENT_HOST_ID: ["vm-host-1", "vm-host-1"],
  NODE_AGENT_NETWORK_BACKEND: ["bridge", "bridge"],
  NODE_AGENT_NETWORK_INTERFACE: ["br0", "br0"],
  NODE_AGENT_BASE_IMAGE_DIR: ["/srv/base", "/srv/base"],
  NODE_AGENT_CLOUD_INIT_DIR: ["/srv/cloud-init", "/srv/cloud-init"],
  ALLOW_UNKNOWN_HOST_REGISTRATION: ["true", "true"],
  GATEWAY_HOST: ["0.0.0.0", "0.0.0.0"],
  GATEWAY_PORT: ["4002", 4002],
  GATEWAY_LOG_LEVEL: ["debug", "debug"],
  VESPID_AGENT_TLS_CA_FILE: ["/absolute/path/to/ca.pem", "/absolute/path/to/ca.pem"],
  VESPID_AGENT_EXEC_BACKEND: ["host", "host"],
  VESPID_AGENT_WORKDIR_ROOT: ["/srv/work", "/srv/work"],
  VESPID_AGENT_DOCKER_IMAGE: ["debian:13", "debian:13"],
  VESPID_AGENT_DOCKER_NETWORK_DEFAULT: ["enabled", "enabled"],
  VESPID_AGENT_DOCKER_TIMEOUT_MS: ["45000", 45_000],
  VESPID_AGENT_DOCKER_MEMORY_MB: ["512", 512],
  VESPID_AGENT_DOCKER_CPUS: ["1.5", 1.5],
  VESPID_AGENT_DOCKER_PIDS: ["64", 64],
  VESPID_AGENT_DOCKER_OUTPUT_MAX_CHARS: ["1000", 1000],
  GATEWAY_SERVICE_TOKEN: ["s".repeat(16), "s".repeat(16)],
  GATEWAY_AGENT_STALE_MS: ["90000", 90_000],
  NODE_EXEC_TIMEOUT_MS: ["30000", 30_000],
  WORKFLOW_CONTINUATION_QUEUE_NAME: ["another-queue", "another-queue"],
  WORKFLOW_CONTINUATION_POLL_MS: ["500", 500],
  WORKFLOW_CONTINUATION_CONCURRENCY: ["3", 3],
  GATEWAY_HTTP_URL: ["https://gateway:3003", "https://gateway:3003"],
  GATEWAY_WS_URL: ["wss://holdfast.example.com/ws", "wss://holdfast.example.com/ws"],
  GATEWAY_AGENT_SELECTION: ["round_robin", "round_robin"],
  GATEWAY_RESULTS_TTL_SEC: ["60", 60],
};

describe("known environment variables", () => {
  it("OPS-03 are 43, and no setting or report has another", () => {
    expect(new Set(known).size).toBe(43);
    const named = [...declarations.flatMap(({ aliases }) => aliases), ...unsupportedNames.keys()];
    expect(new Set(named)).toEqual(new Set(known));
  });

  it.for(known)("OPS-03 %s sets what its canonical name sets, or is reported as not supported", (name) => {
    const settings = settingsNamed(name);
    const [text, value] = examples[name] ?? ["geheim", undefined];
    const warnings = warningsAboutUnsupported({ [name]: text, PATH: "/bin" });
    if (settings.length === 0) {
      const status = name === "NODE_AGENT_PIP_CONSTRAINT" ? "known, ignored" : "known, not supported yet";
      expect(warnings).toEqual([expect.stringMatching(`^${name} is set: ${status}; [^\\n]+\\.$`)]);
      expect(warnings[0]).not.toContain(text);
      expect(warningsAboutUnsupported({ [name]: "" })).toEqual([]);
      return;
    }
    expect(warnings).toEqual([]);
    expect(new Set(settings.map(({ env }) => env)).size, "one meaning in all processes").toBe(1);
    for (const setting of settings) {
      expect(setting.default).not.toEqual(value);
      expect(readSettings({ setting }, { [name]: text }).setting).toEqual(value);
      const both = { [name]: "the canonical name decides before this is looked at", [setting.env]: text };
      expect(readSettings({ setting }, both).setting).toEqual(value);
    }
  });

  it.each(processes.map((settings) => [Object.values<Setting>(settings)] as const))(
    "OPS-03 name one setting of a process each",
    (settings) => {
      const names = settings.flatMap(({ env, aliases }) => [env, ...aliases]);
      expect(names.filter((name, index) => names.indexOf(name) !== index)).toEqual([]);
    },
  );
});
