// deploy/ as it is handed out: what it names must exist. Settings are those of the process that gets them, ports and
// probes are the product's, secrets come from elsewhere. Nothing of it is run here but the scripts' syntax check.

import { spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { ingressSettings } from "@holdfast/cli/ingress/settings";
import { EXECUTION_PATHS } from "@holdfast/contracts/execution/frames";
import { CERTIFICATE_HEADER } from "@holdfast/contracts/headers";
import { TERMINAL_PATH } from "@holdfast/contracts/terminal/frames";
import { apiSettings } from "@holdfast/control-plane/api/settings";
import { databaseSettings } from "@holdfast/control-plane/database/settings";
import { workerSettings } from "@holdfast/control-plane/worker/settings";
import { gatewayNodeFlags } from "@holdfast/gateway/node-flags";
import { gatewaySettings } from "@holdfast/gateway/settings";
import type { Setting, Settings } from "@holdfast/kit/settings";
import { describe, expect, it } from "vitest";
import { parse, parseAllDocuments } from "yaml";

const deploy = fileURLToPath(new URL("../deploy/", import.meta.url));
const read = (path: string) => readFileSync(join(deploy, path), "utf8");

const processes: Record<string, Settings> = {
  api: apiSettings,
  gateway: gatewaySettings,
  worker: workerSettings,
  ingress: ingressSettings,
  migrate: databaseSettings,
};
const logins = ["HOLDFAST_APP_DATABASE_URL", "HOLDFAST_SYSTEM_DATABASE_URL"];
/** What a process does not run without, though `holdfast up` or a default may give it. */
const needed: Record<string, string[]> = {
  api: [...logins, "HOLDFAST_KEK_BASE64", "HOLDFAST_SERVICE_TOKEN", "HOLDFAST_INGRESS_TOKEN"],
  gateway: [
    ...["HOLDFAST_SERVICE_TOKEN", "HOLDFAST_DISPATCH_TOKEN", "HOLDFAST_API_INTERNAL_URL"],
    "HOLDFAST_REDIS_URL",
  ],
  worker: ["HOLDFAST_SYSTEM_DATABASE_URL", "HOLDFAST_DISPATCH_TOKEN", "HOLDFAST_GATEWAY_HTTP_URL"],
  ingress: ["HOLDFAST_INGRESS_TOKEN", "HOLDFAST_API_INTERNAL_URL"],
  migrate: ["HOLDFAST_DATABASE_URL", ...logins],
};
const ports = {
  api: apiSettings.port.default,
  nodeApi: apiSettings.nodePort.default,
  internal: apiSettings.internalPort.default,
  gateway: gatewaySettings.port.default,
  nodeTerminal: gatewaySettings.nodePort.default,
  gatewayInternal: gatewaySettings.internalPort.default,
};

/** A value that comes from elsewhere is undefined. */
function checkEnvironment(
  name: string,
  { NODE_OPTIONS: flags, ...environment }: Record<string, string | undefined>,
): void {
  // As `holdfast up` starts it.
  expect(flags, `NODE_OPTIONS of ${name}`).toBe(name === "gateway" ? gatewayNodeFlags.join(" ") : undefined);
  const settings: Setting[] = Object.values(processes[name] ?? {});
  expect(settings.length, name).toBeGreaterThan(0);
  for (const [variable, value] of Object.entries(environment)) {
    const setting = settings.find(({ env }) => env === variable);
    expect(setting, `${variable} of ${name}`).toBeDefined();
    if (setting?.secret) expect(value, `${variable} is secret`).toBeUndefined();
    if (value !== undefined) expect(setting?.kind.parse(value), `${variable}: ${value}`).toBeDefined();
  }
  expect(Object.keys(environment)).toEqual(expect.arrayContaining(needed[name] ?? []));
}

const seconds = (text: string) => Number(/^(\d+)s?$/.exec(text)?.[1]);
/** How long nginx keeps unused connections to what is behind it. */
const unusedSeconds = Math.max(
  ...["holdfast-nodes.conf", "holdfast-public.conf"]
    .flatMap((file) => [...read(`nginx/${file}`).matchAll(/^upstream [^}]*?keepalive_timeout (\d+)s;/gm)])
    .map(([, kept]) => Number(kept)),
);

type Service = {
  image: string;
  command?: string[];
  environment?: Record<string, string>;
  ports?: string[];
  volumes?: string[];
  depends_on?: Record<string, unknown>;
  stop_grace_period?: string;
  healthcheck?: { test: string[] };
  networks: string[] | Record<string, { ipv4_address?: string }>;
};

describe("deploy/compose", () => {
  const { services, volumes } = parse(read("compose/compose.yaml"), { merge: true }) as {
    services: Record<string, Service>;
    volumes: Record<string, unknown>;
  };
  const ours = Object.entries(services).filter(([, { image }]) => image === "holdfast");
  const addressOf = (name: string) => {
    const { networks } = services[name] ?? { networks: [] };
    return Array.isArray(networks) ? undefined : networks["holdfast"]?.ipv4_address;
  };

  it("OPS-02 has two apis, two workers, two gateways, and everything around them", () => {
    const commands = ours.map(([, { command = [] }]) => command.join(" ")).sort();
    expect(commands).toEqual(
      ["api", "api", "gateway", "gateway", "ingress", "ingress --once", "migrate", "worker", "worker"].sort(),
    );
    for (const [name, { depends_on = {} }] of Object.entries(services)) {
      for (const other of Object.keys(depends_on))
        expect(services, `${name} depends on ${other}`).toHaveProperty(other);
    }
  });

  it("OPS-03 gives each process settings that it knows, and secrets from the environment only", () => {
    for (const [, { command = [], environment = {} }] of ours) {
      const values = Object.entries(environment).map(([variable, value]) => {
        // Compose stops when one of these is not set.
        const whole = /^\$\{(\w+):\?\}$/.exec(value);
        if (whole) return [variable, undefined];
        return [variable, value.replace(/\$\{PUBLIC_NAME:\?\}/g, "holdfast.example.com")];
      });
      checkEnvironment(command[0] ?? "", Object.fromEntries(values) as Record<string, string | undefined>);
    }
    const asked = new Set([...read("compose/compose.yaml").matchAll(/\$\{(\w+):\?\}/g)].map(([, name]) => name));
    const made = [...read("compose/make-env.sh").matchAll(/^([A-Z0-9_]+)=/gm)].map(([, name]) => name);
    expect(made.sort()).toEqual([...asked].sort());
  });

  it("OPS-02 lets nginx reach what it names, by addresses that stay", () => {
    const hosts = [
      ...`${read("nginx/holdfast-nodes.conf")}${read("nginx/holdfast-public.conf")}`.matchAll(
        /^ {4}server ([\w-]+):/gm,
      ),
    ];
    for (const [, host = ""] of hosts) expect(addressOf(host), host).toMatch(/^172\.31\.42\.\d+$/);
    expect(services["nginx"]?.ports).toEqual([
      "443:443",
      ...[ports.nodeApi, ports.nodeTerminal].map((one) => `${one}:${one}`),
    ]);
    for (const name of ["api-1", "api-2", "gateway-1", "gateway-2"]) {
      expect(services[name]?.environment?.["HOLDFAST_TRUSTED_PROXIES"]).toBe(addressOf("nginx"));
    }
    for (const { volumes: mounted = [] } of Object.values(services)) {
      for (const [from = "", to = ""] of mounted.map((one) => one.split(":"))) {
        if (from.startsWith("../")) expect(existsSync(join(deploy, "compose", from)), from).toBe(true);
        else if (!from.startsWith("./")) expect(volumes, `${from} at ${to}`).toHaveProperty(from);
      }
    }
  });

  it("OPS-02 drains longer than nginx keeps unused connections, and has time for it", () => {
    for (const name of ["api-1", "api-2"]) {
      const { environment, stop_grace_period = "", healthcheck } = services[name] ?? {};
      const drain = seconds(environment?.["HOLDFAST_DRAIN_SECONDS"] ?? "");
      expect(drain).toBeGreaterThan(unusedSeconds);
      expect(seconds(stop_grace_period)).toBeGreaterThan(2 * drain);
      expect(healthcheck?.test.join(" ")).toContain(`127.0.0.1:${ports.api}/readyz`);
    }
  });
});

type Container = {
  name: string;
  image: string;
  command?: string[];
  args?: string[];
  env?: {
    name: string;
    value?: string;
    valueFrom?: { secretKeyRef?: object; configMapKeyRef?: { key: string }; fieldRef?: object };
  }[];
  envFrom?: { configMapRef: { name: string } }[];
  ports?: { name: string; containerPort: number }[];
  volumeMounts?: { name: string }[];
  securityContext: { allowPrivilegeEscalation: boolean; capabilities: { drop: string[] } };
} & Partial<
  Record<"startupProbe" | "livenessProbe" | "readinessProbe", { httpGet?: Probe; tcpSocket?: { port: string } }>
>;
type Probe = { path: string; port: string; httpHeaders: { name: string; value: string }[] };
type Pod = {
  containers: Container[];
  initContainers?: Container[];
  volumes?: { name: string }[];
  terminationGracePeriodSeconds?: number;
};
type Manifest = {
  kind: string;
  metadata: { name: string; namespace?: string };
  data?: Record<string, string>;
  spec: Record<string, unknown>;
};

describe("deploy/kubernetes", () => {
  const manifests = ["holdfast.yaml", "nginx.yaml", "network-policies.yaml"].flatMap((file) =>
    parseAllDocuments(read(`kubernetes/${file}`)).map((document) => {
      expect(document.errors, file).toEqual([]);
      return { spec: {}, ...(document.toJS() as Omit<Manifest, "spec">) } as Manifest;
    }),
  );
  const ofKind = (kind: string) => manifests.filter((one) => one.kind === kind);
  const common = ofKind("ConfigMap")[0]?.data ?? {};
  const pods = [...ofKind("Deployment"), ...ofKind("Job")].map(({ metadata, spec }) => ({
    name: metadata.name,
    replicas: spec["replicas"] as number | undefined,
    labels: (spec["template"] as { metadata: { labels: Record<string, string> } }).metadata.labels,
    pod: (spec["template"] as { spec: Pod }).spec,
  }));
  const containers = pods.flatMap(({ pod }) => [...(pod.initContainers ?? []), ...pod.containers]);
  const portsOf = (app: string) =>
    pods.find(({ labels }) => labels["app"] === app)?.pod.containers.flatMap((one) => one.ports ?? []) ?? [];

  it("OPS-02 has two of everything that may be two, and keeps one of each while nodes are drained", () => {
    expect(Object.fromEntries(pods.map(({ name, replicas }) => [name, replicas]))).toEqual({
      "holdfast-api": 2,
      "holdfast-gateway": 2,
      "holdfast-migrate": undefined,
      "holdfast-nginx": 2,
      "holdfast-worker": 2,
    });
    const kept = ofKind("PodDisruptionBudget")
      .map(({ metadata }) => metadata.name)
      .sort();
    expect(kept).toEqual(["holdfast-api", "holdfast-gateway", "holdfast-nginx", "holdfast-worker"]);
    for (const { kind, metadata } of manifests)
      if (kind !== "Namespace") expect(metadata.namespace).toBe("holdfast");
  });

  it("OPS-03 gives each process settings that it knows, and secrets by reference only", () => {
    for (const { image, args, env = [], envFrom = [] } of containers) {
      if (image !== "holdfast" || !args) continue;
      const shared = envFrom.length > 0 ? common : {};
      const ofPod = env.filter(({ valueFrom }) => valueFrom?.fieldRef).map(({ name }) => name);
      const settings = env.filter(({ name }) => !ofPod.includes(name));
      const own = settings.map(({ name, value, valueFrom }) => {
        const fromMap = valueFrom?.configMapKeyRef && common[valueFrom.configMapKeyRef.key];
        if (valueFrom?.configMapKeyRef) expect(fromMap, name).toBeDefined();
        const filled = value?.replace(/\$\((\w+)\)/g, (_, field: string) => {
          expect(ofPod, name).toContain(field);
          return "10.0.0.1";
        });
        return [name, filled ?? fromMap] as const;
      });
      checkEnvironment(args[0] ?? "", { ...shared, ...Object.fromEntries(own) });
    }
  });

  it("OPS-02 probes paths that exist, on the product's own ports, with a Host that is answered", () => {
    const own = {
      api: [ports.api, ports.nodeApi, ports.internal],
      gateway: [ports.gateway, ports.nodeTerminal, ports.gatewayInternal],
    };
    for (const [name, expected] of Object.entries(own)) {
      expect(portsOf(`holdfast-${name}`).map((one) => one.containerPort)).toEqual(expected);
    }
    for (const { ports: open = [], startupProbe, livenessProbe, readinessProbe } of containers) {
      for (const probe of [startupProbe, livenessProbe, readinessProbe]) {
        const { path, port, httpHeaders } = probe?.httpGet ?? {};
        const named = port ?? probe?.tcpSocket?.port;
        if (named !== undefined) expect(open.map((one) => one.name)).toContain(named);
        if (path === undefined) continue;
        expect(["/healthz", "/readyz"]).toContain(path);
        expect(httpHeaders).toEqual([{ name: "Host", value: "localhost" }]);
      }
    }
    for (const { spec } of ofKind("Service")) {
      const open = portsOf((spec["selector"] as { app: string }).app);
      for (const { port, targetPort } of spec["ports"] as { port: number; targetPort: string }[]) {
        expect(open).toContainEqual({ name: targetPort, containerPort: port });
      }
    }
    for (const { spec } of ofKind("NetworkPolicy")) {
      const app = (spec["podSelector"] as { matchLabels?: { app: string } }).matchLabels?.app;
      const open = app === undefined ? [] : portsOf(app).map((one) => one.containerPort);
      for (const rule of (spec["ingress"] ?? []) as { ports: { port: number }[] }[]) {
        for (const { port } of rule.ports) expect(open, app).toContain(port);
      }
    }
  });

  it("SEC-03 runs nothing with more rights than it needs, and mounts what there is", () => {
    for (const { name, securityContext } of containers) {
      expect(securityContext, name).toMatchObject({
        allowPrivilegeEscalation: false,
        readOnlyRootFilesystem: true,
        capabilities: { drop: ["ALL"] },
      });
    }
    for (const { pod } of pods) {
      const there = (pod.volumes ?? []).map(({ name }) => name);
      const mounted = [...(pod.initContainers ?? []), ...pod.containers].flatMap((one) => one.volumeMounts ?? []);
      for (const { name } of mounted) expect(there).toContain(name);
    }
  });

  it("OPS-02 drains longer than nginx keeps unused connections, and has time for it", () => {
    const api = pods.find(({ name }) => name === "holdfast-api")?.pod;
    const drain = Number(api?.containers[0]?.env?.find(({ name }) => name === "HOLDFAST_DRAIN_SECONDS")?.value);
    expect(drain).toBeGreaterThan(unusedSeconds);
    expect(api?.terminationGracePeriodSeconds).toBeGreaterThan(2 * drain);
  });
});

describe("deploy/nginx", () => {
  const nodes = read("nginx/holdfast-nodes.conf");

  it("ID-13 overwrites the certificate's header on each of the nodes' listeners", () => {
    const servers = nodes.split(/^server \{/m).slice(1);
    expect(servers).toHaveLength(2);
    for (const server of servers) {
      const set = [...server.matchAll(/proxy_set_header (\S+) \$ssl_client_escaped_cert;/g)].map(
        ([, name]) => name,
      );
      expect(set.map((name) => name?.toLowerCase())).toEqual([CERTIFICATE_HEADER]);
      expect(server).toContain("ssl_verify_client optional_no_ca;");
      expect(server).toContain("proxy_ssl_verify on;");
    }
    expect(nodes).not.toContain("non_idempotent");
  });

  it("OPS-02 names the product's own ports and paths", () => {
    const behind = (file: string) => [
      ...new Set([...read(file).matchAll(/^ {4}server [\w-]+:(\d+)/gm)].map(([, port]) => Number(port))),
    ];
    expect(behind("nginx/holdfast-nodes.conf")).toEqual([ports.nodeApi, ports.nodeTerminal]);
    expect(behind("nginx/holdfast-public.conf")).toEqual([ports.api, ports.gateway]);
    expect(read("nginx/holdfast-public.conf")).toContain(`location = ${TERMINAL_PATH} {`);
    const [, agents = ""] = /location ~ (\S*ws\S*) \{/.exec(read("nginx/holdfast-public.conf")) ?? [];
    expect(
      ["/ws", "/ws/executor", "/ws/other", "/internal/v1/dispatch"].filter((path) =>
        new RegExp(agents).test(path),
      ),
    ).toEqual([...EXECUTION_PATHS]);
  });
});

describe("scripts and the image", () => {
  it.for(["compose/make-env.sh", "nginx/start.sh"])(
    "OPS-02 %s is a shell script without mistakes of form",
    (path) => {
      expect(spawnSync("/bin/sh", ["-n", join(deploy, path)]).status).toBe(0);
    },
  );

  it("OPS-02 is made from files that are there, and begins with a command that is", () => {
    const file = read("Dockerfile");
    const root = dirname(deploy);
    const [, entry = ""] = /ln -s \/opt\/holdfast\/(\S+) \/usr\/local\/bin\/holdfast/.exec(file) ?? [];
    expect(existsSync(join(root, entry)), entry).toBe(true);
    expect(existsSync(join(root, "scripts/prepare.mjs"))).toBe(true);
    expect(file).toMatch(/^USER 10001:10001$/m);
    expect(file).toMatch(/^ENTRYPOINT \["holdfast"\]$/m);
  });
});
