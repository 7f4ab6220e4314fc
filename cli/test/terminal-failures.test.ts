// The terminal failure matrix, each row produced for real between whole processes: the person is told the
// code with its hop and owner, the trail and the metrics have it too, and after the repair the same
// command works.

import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Allocation } from "@holdfast/contracts/endpoints/allocations";
import { type TerminalFailureCode, terminalFailures } from "@holdfast/contracts/terminal-failures";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { enrollGateway, SERVICE_TOKEN } from "../../control-plane/test/support/services.ts";
import { lacks } from "../../scripts/facilities.mjs";
import {
  type Front,
  openForeign,
  openFront,
  openOtherSite,
  openProxyWithoutUpgrades,
  openSink,
  openTlsEnd,
  type Standing,
} from "./support/edges.ts";
import { errorOf, type Failure } from "./support/first-node.ts";
import { until } from "./support/holdfast.ts";
import { openShells, type Shells } from "./support/shells.ts";

type AuditItem = { action: string; result: string; reason: string | null };

describe.skipIf(lacks("root") || lacks("openssl"))("a terminal that does not come up", () => {
  let shells: Shells;
  /** What people, and what nodes, are told to be the gateway's address. */
  let publicFront: Front;
  let nodeFront: Front;
  let certificate: { cert: string; key: string };
  let ports: { public: number; node: number };
  const standing: Standing[] = [];

  beforeAll(async () => {
    publicFront = await openFront();
    nodeFront = await openFront();
    shells = await openShells({
      HOLDFAST_SERVICE_TOKEN: SERVICE_TOKEN,
      HOLDFAST_TERMINAL_OPEN_SECONDS: "5",
      HOLDFAST_GATEWAY_PUBLIC_URL: `http://127.0.0.1:${publicFront.port}`,
      HOLDFAST_NODE_TERMINAL_URL: `https://127.0.0.1:${nodeFront.port}`,
    });
    const ready = await shells.up.ready;
    ports = { public: portOf(ready.gateway_url), node: portOf(ready.node_terminal_url) };
    // A second service of the same installation has a certificate that nodes trust.
    const service = await enrollGateway({ internalUrl: ready.api_internal_url });
    certificate = service.tls as typeof certificate;
    // As from another machine: the way through the public address is what is looked at.
    const { token } = await shells.json<{ token: string }>(["token", "create", "--name", "t", "--role", "admin"]);
    Object.assign(shells.env, { HOLDFAST_API_URL: ready.api_url, HOLDFAST_TOKEN: token });
    repair();
  }, 120_000);
  afterAll(async () => {
    await shells.cleanUp();
    await Promise.all([publicFront, nodeFront, ...standing].map((one) => one.stop()));
  });

  const portOf = (url: string) => Number(new URL(url).port);
  const repair = () => {
    publicFront.lead(ports.public);
    nodeFront.lead(ports.node);
  };
  const stand = async (made: Promise<Standing>): Promise<number> => {
    const one = await made;
    standing.push(one);
    return one.port;
  };
  const metric = async (code: string): Promise<number> => {
    const text = await (await fetch(`${(await shells.up.ready).api_url}/metrics`)).text();
    return Number(
      new RegExp(`^holdfast_terminal_failures_total\\{code="${code}"[^}]*\\} (\\d+)`, "m").exec(text)?.[1] ?? 0,
    );
  };
  const audited = async (correlationId: string): Promise<AuditItem[]> =>
    (await shells.json<{ items: AuditItem[] }>(["audit", "list", "--correlation", correlationId])).items;

  /** Runs `holdfast terminal`, and expects it to say this, everywhere. */
  async function fails(code: TerminalFailureCode): Promise<Failure> {
    const before = await metric(code);
    const outcome = await shells.piped("exit\n", ["--json"]);
    expect(outcome.code, outcome.stdout + outcome.stderr).toBe(1);
    const told = errorOf(outcome);
    const { hop, owner } = terminalFailures[code];
    expect(told).toMatchObject({ code, next_step: expect.stringMatching(/\w/), details: { hop, owner } });
    const correlationId = String(told.details?.["correlation_id"]);
    await until(async () => (await audited(correlationId)).some(({ reason }) => reason === code));
    await until(async () => (await metric(code)) > before);
    return told;
  }

  async function works(): Promise<void> {
    repair();
    const { code, stdout, stderr } = await shells.piped("echo so''much; exit\n");
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(stdout).toContain("somuch");
  }

  it("TERM-09 terminal_public_route_missing: another site answers at the gateway's address", async () => {
    publicFront.lead(await stand(openOtherSite()));
    await fails("terminal_public_route_missing");
    publicFront.lead("refused");
    await fails("terminal_public_route_missing");
    await works();
  });

  it("TERM-09 terminal_gateway_upgrade_failed: a proxy passes no WebSockets on", async () => {
    publicFront.lead(await stand(openProxyWithoutUpgrades(() => ports.public)));
    await fails("terminal_gateway_upgrade_failed");
    await works();
  });

  it.for(["silent", "refused"] as const)(
    "TERM-09 terminal_node_stream_timeout: the way from the node is %s",
    async (way) => {
      nodeFront.lead(way);
      await fails("terminal_node_stream_timeout");
      await works();
    },
  );

  it("TERM-09 TERM-12 terminal_open_without_stream: the agent says so, the gateway saw nothing", async () => {
    nodeFront.lead(await stand(openSink(certificate)));
    await fails("terminal_open_without_stream");
    await works();
  });

  it("TERM-09 TERM-04 terminal_node_stream_mtls_failed: the stream comes without the node's certificate", async () => {
    nodeFront.lead(await stand(openTlsEnd(certificate, () => ports.node)));
    await fails("terminal_node_stream_mtls_failed");
    await works();
  });

  it("TERM-09 TERM-06 terminal_pty_failed: the user was removed from the host", async () => {
    const { username, home } = shells.allocation;
    const uid = execFileSync("id", ["-u", username], { encoding: "utf8" }).trim();
    execFileSync("userdel", ["--force", username], { stdio: "ignore" });
    const told = await fails("terminal_pty_failed");
    expect(told.message).toContain(`There is no user ${username} on this node.`);
    execFileSync("useradd", ["--uid", uid, "--home-dir", String(home), "--shell", "/bin/bash", username], {
      stdio: "ignore",
    });
    await works();
  });

  it("TERM-09 TERM-05 terminal_ui_connecting_stuck: what the gateway says is lost on the way", async () => {
    publicFront.lead({ headsOnlyFrom: ports.public });
    await fails("terminal_ui_connecting_stuck");
    await works();
  });

  it("TERM-09 TERM-12 terminal_env_profile_drift: somebody else is at the address the node was told", async () => {
    nodeFront.lead(await stand(openForeign(selfSigned())));
    await fails("terminal_env_profile_drift");
    await works();
  });

  it("TERM-08 the list shows each attempt with its chain and the reason of its failure", async () => {
    nodeFront.lead("refused");
    const told = await fails("terminal_node_stream_timeout");
    const [session] = await shells.terminals();
    expect(session).toMatchObject({
      state: "failed",
      failure: { code: "terminal_node_stream_timeout", hop: "node_terminal_reachability" },
      chain: { token_ready: expect.any(String), terminal_open_sent: expect.any(String) },
      correlation_id: told.details?.["correlation_id"],
    });
    expect(session?.chain).not.toHaveProperty("node_stream_connected");
    await works();
  });

  it("TERM-09 terminal_token_mint_failed: the allocation was given back", async () => {
    const { username } = shells.allocation;
    await shells.json(["allocation", "release", shells.allocation.id]);
    const told = await fails("terminal_token_mint_failed");
    expect(told.message).toContain("given back");
    shells.allocation = await shells.json<Allocation>([
      ...["allocation", "create", "--node", shells.node.name, "--user", username],
    ]);
    await works();
  });

  function selfSigned(): { cert: string; key: string } {
    const [cert, key] = ["foreign.crt", "foreign.key"].map((name) => join(shells.scratch, name)) as [
      string,
      string,
    ];
    execFileSync(
      "openssl",
      [
        ...["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "1"],
        ...["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", cert],
      ],
      { stdio: "ignore" },
    );
    return { cert: readFileSync(cert, "utf8"), key: readFileSync(key, "utf8") };
  }
});
