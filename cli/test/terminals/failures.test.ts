// The terminal failure matrix, each row produced for real between whole processes: on the command line and
// in the browser the person gets the code with its hop and owner, the trail and the metrics have it too,
// and after the repair the same command and the same click work.

import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type Client, createClient } from "@holdfast/contracts/client";
import type { Allocation } from "@holdfast/contracts/endpoints/allocations";
import { listAudit } from "@holdfast/contracts/endpoints/audit";
import { createTerminalToken, listTerminals } from "@holdfast/contracts/endpoints/terminals";
import { type TerminalFailureCode, terminalFailures } from "@holdfast/contracts/reasons/terminal";
import {
  type ReadinessStep,
  readServerFrame,
  TERMINAL_PROTOCOL,
  type TerminalError,
  TOKEN_PROTOCOL,
} from "@holdfast/contracts/terminal/frames";
import { afterAll, afterEach, beforeAll, describe, expect, it, onTestFinished, vi } from "vitest";
import { WebSocket } from "ws";
import { lacks } from "../../../scripts/facilities.mjs";
import { enrollGateway, SERVICE_TOKEN } from "../../../testkit/api/services.ts";
import { keepScreenshot, openChromium, withoutWebgl } from "../../../testkit/browser/browser.ts";
import { type AtPage, signIn } from "../support/at-page.ts";
import {
  type Front,
  openForeign,
  openFront,
  openOtherSite,
  openProxyWithoutUpgrades,
  openSink,
  openTlsEnd,
  type Standing,
} from "../support/edges.ts";
import { errorOf, type Failure } from "../support/first-node.ts";
import { ask, openShells, type Shells } from "../support/shells.ts";
import { dropTerminals, shortLived } from "../torture/terminals.ts";

/** What is said beside the catalogue's own words. */
type Expected = { owner?: string; ownerInWords?: string; why?: string; onPage?: string };

/** Where the chain on the page is seen to stop. */
const stops: Partial<Record<TerminalFailureCode, ReadinessStep>> = {
  terminal_token_mint_failed: "token_ready",
  terminal_public_route_missing: "browser_ws_ready",
  terminal_gateway_upgrade_failed: "browser_ws_ready",
  terminal_ui_connecting_stuck: "terminal_open_sent",
  terminal_node_stream_timeout: "node_stream_connected",
  terminal_open_without_stream: "node_stream_connected",
  terminal_node_stream_mtls_failed: "node_stream_connected",
  terminal_env_profile_drift: "node_stream_connected",
  terminal_pty_failed: "pty_ready",
};

// Rows about time wait for twenty seconds, some of them twice.
vi.setConfig({ testTimeout: 180_000 });

describe.skipIf(lacks("root") || lacks("openssl"))("a terminal that does not come up", () => {
  const chromium = lacks("chromium") ? undefined : openChromium(withoutWebgl);
  let shells: Shells;
  let atPage: AtPage | undefined;
  /** The gateway's address as published to people, and to nodes. */
  let publicFront: Front;
  let nodeFront: Front;
  let certificate: { cert: string; key: string };
  let client: Client;
  let ports: { public: number; node: number };
  const standing: Standing[] = [];

  beforeAll(async () => {
    publicFront = await openFront();
    nodeFront = await openFront();
    shells = await openShells({
      ...shortLived,
      HOLDFAST_SERVICE_TOKEN: SERVICE_TOKEN,
      // Enough for a busy machine, of which the page has 0.6 to connect: every row but those about time
      // fails, or works, well before.
      HOLDFAST_TERMINAL_OPEN_SECONDS: "20",
      HOLDFAST_GATEWAY_PUBLIC_URL: `http://127.0.0.1:${publicFront.port}`,
      HOLDFAST_NODE_TERMINAL_URL: `https://127.0.0.1:${nodeFront.port}`,
    });
    const ready = await shells.up.ready;
    ports = { public: portOf(ready.gateway_url), node: portOf(ready.node_terminal_url) };
    // A second service of the same installation has a certificate that nodes trust.
    const service = await enrollGateway({ internalUrl: ready.api_internal_url });
    certificate = service.tls as typeof certificate;
    if (chromium) atPage = await signIn(await chromium.visit(), shells);
    // As from another machine: the way through the public address is what is looked at.
    const { token } = await shells.json<{ token: string }>(["token", "create", "--name", "t", "--role", "admin"]);
    Object.assign(shells.env, { HOLDFAST_API_URL: ready.api_url, HOLDFAST_TOKEN: token });
    client = createClient({ baseUrl: ready.api_url, token });
    repair();
  });
  afterAll(async () => {
    await shells.cleanUp();
    await Promise.all([publicFront, nodeFront, ...standing].map((one) => one.stop()));
  });

  // A row that fails takes no other with it: this, and what the row itself restores with `onTestFinished`.
  afterEach(() => {
    repair();
    atPage?.complaints.splice(0);
  });

  const portOf = (url: string) => Number(new URL(url).port);
  const repair = () => {
    publicFront.lead(ports.public);
    nodeFront.lead(ports.node);
  };
  const reactivate = async () => {
    const { status } = await shells.json<{ status: string }>(["node", "show", shells.node.name]);
    if (status !== "active") await shells.json(["node", "reactivate", shells.node.name]);
  };
  const restoreUser = () => shells.json(["allocation", "repair", shells.allocation.id]);
  /** The user's, if it was released. */
  const restoreAllocation = async () => {
    const { username } = shells.allocation;
    const { status } = await shells.json<Allocation>(["allocation", "show", shells.allocation.id]);
    if (status === "active") return;
    const args = ["allocation", "create", "--node", shells.node.name, "--user", username];
    shells.allocation = await shells.json<Allocation>(args);
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
  const audited = async (correlation_id: string) => (await client(listAudit, { query: { correlation_id } })).items;
  const terminalWith = async (correlation_id: string) =>
    (await client(listTerminals, { query: { correlation_id } })).items;

  /** The shell may answer before the api has stored that it is open. */
  const theOpenTerminal = () =>
    vi.waitUntil(async () => (await shells.terminals("open"))[0], { timeout: 60_000, interval: 100 });

  /** Opens a terminal in both ways, and expects this to be said by both and kept of both. */
  async function fails(
    code: TerminalFailureCode,
    expected: Expected = {},
    open: () => unknown = () => atPage?.openTerminal(),
  ): Promise<Failure> {
    const before = await metric(code);
    const [failure, quoted] = await Promise.all([
      failsOnCommandLine(code, expected),
      atPage && failsOnPage(atPage, code, { ...expected, open }),
    ]);
    const correlationIds = [String(failure.details?.["correlation_id"]), ...(quoted ? [quoted] : [])];
    for (const id of correlationIds)
      await expect.poll(async () => (await audited(id)).map(({ reason }) => reason)).toContain(code);
    // Without permission there is no terminal that could have failed.
    if (code !== "terminal_token_mint_failed") {
      const { hop, owner } = terminalFailures[code];
      // A shell that came up without its client knowing is found, not failed.
      const ended = code === "terminal_ui_connecting_stuck" ? {} : { state: "failed" };
      for (const correlation_id of correlationIds)
        await expect
          .poll(() => terminalWith(correlation_id))
          .toMatchObject([{ ...ended, failure: { code, hop, owner, correlation_id } }]);
    }
    await expect.poll(() => metric(code)).toBeGreaterThanOrEqual(before + correlationIds.length);
    return failure;
  }

  async function failsOnCommandLine(code: TerminalFailureCode, expected: Expected): Promise<Failure> {
    const outcome = await shells.piped("exit\n", ["--json"]);
    expect(outcome.code, outcome.stdout + outcome.stderr).toBe(1);
    const failure = errorOf(outcome);
    const { hop, owner } = { ...terminalFailures[code], ...expected };
    expect(failure).toMatchObject({ code, next_step: expect.stringMatching(/^[^<>]+$/), details: { hop, owner } });
    if (expected.why) expect(failure.message).toContain(expected.why);
    return failure;
  }

  /** Returns the correlation id that the page shows. */
  async function failsOnPage(
    { page, complaints }: AtPage,
    code: TerminalFailureCode,
    { why = "", onPage = "", ownerInWords = "", open }: Expected & { open: () => unknown },
  ): Promise<string> {
    await open();
    const alert = page.locator(`[role="alert"][data-code="${code}"]`);
    await alert.waitFor().catch(async (error) => {
      throw new Error(`The page shows:\n${await page.locator("main").textContent()}`, { cause: error });
    });
    expect(await page.locator("[data-phase]").getAttribute("data-phase")).toBe("failed");
    const text = (await alert.textContent()) ?? "";
    for (const words of [terminalFailures[code].message, why, onPage, code]) expect(text).toContain(words);
    const fact = (name: string) => alert.locator("dt", { hasText: name }).locator("+ dd").textContent();
    expect(await fact("What to do")).toMatch(/\w/);
    expect(await fact("Where")).toMatch(/\w/);
    expect(await fact("Who can fix it")).toMatch(ownerInWords || /\w/);
    const stopped = alert.locator('[data-step][data-state="failed"]');
    expect(await stopped.first().getAttribute("data-step")).toBe(stops[code]);
    expect(await stopped.nth(1).getAttribute("data-step"), "and the chain ends with it").toBe("failed");
    await keepScreenshot(page, `row-${code}`);
    // Of a gateway that is not to be reached Chromium complains by itself.
    expect(complaints.splice(0).filter((one) => !/WebSocket connection to|blocked by CORS/.test(one))).toEqual([]);
    return /[0-9a-f]{8}-[0-9a-f-]{27}/.exec((await fact("To quote")) ?? "")?.[0] ?? "";
  }

  const tryAgain = () => atPage?.page.getByRole("button", { name: "Try again" }).click();

  async function works(open: () => unknown = tryAgain): Promise<void> {
    repair();
    await Promise.all([worksOnCommandLine(), atPage && worksOnPage(atPage, open)]);
  }

  async function worksOnCommandLine(): Promise<void> {
    const { code, stdout, stderr } = await shells.piped("echo so''much; exit\n");
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(stdout).toContain("somuch");
  }

  async function worksOnPage({ page, ready, ask, type, complaints }: AtPage, open: () => unknown): Promise<void> {
    await open();
    await ready();
    expect(await page.getByRole("alert").count()).toBe(0);
    expect(await ask("id -un")).toBe(shells.allocation.username);
    await type("exit\n");
    await page.getByText("The shell has ended.").waitFor();
    expect(complaints).toEqual([]);
  }

  it("TERM-09 terminal_public_route_missing: another site answers at the gateway's address", async () => {
    publicFront.lead(await stand(openOtherSite()));
    await fails("terminal_public_route_missing", { onPage: "is not the terminal gateway" });
    // The api has the same /healthz, and is not the gateway either.
    publicFront.lead(portOf((await shells.up.ready).api_url));
    await fails("terminal_public_route_missing", {}, tryAgain);
    publicFront.lead("refused");
    await fails("terminal_public_route_missing", {}, tryAgain);
    await works();
  });

  it("TERM-09 terminal_gateway_upgrade_failed: a proxy passes no WebSockets on", async () => {
    publicFront.lead(await stand(openProxyWithoutUpgrades(() => ports.public)));
    await fails("terminal_gateway_upgrade_failed");
    await works();
  });

  it("TERM-09 TERM-08 terminal_node_stream_timeout: the way from the node is silent, or refused", async () => {
    nodeFront.lead("silent");
    await fails("terminal_node_stream_timeout");
    nodeFront.lead("refused");
    const failure = await fails("terminal_node_stream_timeout", {}, tryAgain);
    const correlationId = failure.details?.["correlation_id"];
    const session = (await shells.terminals()).find(({ correlation_id }) => correlation_id === correlationId);
    expect(session).toMatchObject({
      state: "failed",
      failure: { code: "terminal_node_stream_timeout", hop: "node_terminal_reachability" },
      chain: {
        token_ready: { at: expect.any(String), correlation_id: correlationId },
        terminal_open_sent: { at: expect.any(String), correlation_id: correlationId },
        failed: { at: expect.any(String), correlation_id: correlationId },
      },
    });
    expect(session?.chain).not.toHaveProperty("node_stream_connected");
    await works();
  });

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
    const uid = execFileSync("id", ["-u", username], { encoding: "utf8" });
    writeFileSync(`${home}/thesis`, "twelve years of work");
    const remove = () => execFileSync("userdel", ["--force", username], { stdio: "ignore" });
    onTestFinished(async () => void (await restoreUser()));
    remove();
    const failure = await fails("terminal_pty_failed", { why: `There is no user ${username} on this node.` });
    const [, command = ""] = /`holdfast ([^`]+)`/.exec(String(failure.next_step)) ?? [];
    const repaired = await shells.run(command.split(" "));
    expect(repaired).toMatchObject({ code: 0, stdout: expect.stringContaining("Restored: group") });
    await works();
    if (atPage) {
      remove();
      const { page } = atPage;
      await failsOnPage(atPage, "terminal_pty_failed", { open: () => atPage?.openTerminal() });
      await page.getByRole("button", { name: "Repair" }).click();
      await page.getByRole("button", { name: "Check and repair" }).click();
      await page.getByText(`account ${username} (uid ${uid.trim()})`).waitFor();
      await keepScreenshot(page, "terminal-repaired");
      await works(() => page.getByRole("button", { name: "Open terminal" }).click());
    }
    expect(execFileSync("id", ["-u", username], { encoding: "utf8" })).toBe(uid);
    expect(readFileSync(`${home}/thesis`, "utf8")).toBe("twelve years of work");
  });

  it("TERM-09 TERM-05 terminal_ui_connecting_stuck: what the gateway says is lost on the way", async () => {
    publicFront.lead({ headsOnlyFrom: ports.public });
    await fails("terminal_ui_connecting_stuck");
    await works();
  });

  it("TERM-09 TERM-12 terminal_env_profile_drift: somebody else is at the address published to the node", async () => {
    nodeFront.lead(await stand(openForeign(selfSigned())));
    await fails("terminal_env_profile_drift");
    await works();
  });

  it("TERM-12 terminal_env_profile_drift: another listener of the installation is at that address", async () => {
    const { node_api_url, api_internal_url } = await shells.up.ready;
    nodeFront.lead(portOf(node_api_url));
    await fails("terminal_env_profile_drift", { why: "is not the terminal gateway" });
    nodeFront.lead(portOf(api_internal_url));
    await fails("terminal_env_profile_drift", { why: "is not the terminal gateway" }, tryAgain);
    await works();
  });

  it("TERM-08 a holder that is killed after ready fails the terminal, in the list, the record and the audit", async () => {
    const tty = await shells.atShell();
    const open = await theOpenTerminal();
    process.kill(Number(await ask(tty, "echo $PPID")), "SIGKILL");
    expect((await tty.ended).code).toBe(1);
    expect(tty.shown()).toContain("terminal_pty_failed");
    const { correlation_id } = open;
    await expect
      .poll(() => terminalWith(correlation_id))
      .toMatchObject([
        {
          ...{ id: open.id, state: "failed", chain: { failed: { correlation_id } } },
          failure: { code: "terminal_pty_failed", hop: "workload_terminal_startup_failure", owner: "node" },
        },
      ]);
    const ending = { action: "terminal.close", result: "failed", reason: "terminal_pty_failed" };
    expect(await audited(correlation_id)).toContainEqual(expect.objectContaining(ending));
    const listed = await shells.run(["terminal", "list", "--correlation", correlation_id]);
    expect(listed.stdout).toMatch(/pty_ready.*failed.*Where: workload_terminal_startup_failure. Owner: node./s);
  });

  it("TERM-08 a node that is quarantined ends its terminals for that reason, not for the tenant's", async () => {
    const tty = await shells.atShell();
    const open = await theOpenTerminal();
    onTestFinished(reactivate);
    await shells.json(["node", "fence", shells.node.name]);
    expect((await tty.ended).code).toBe(1);
    expect(tty.shown()).toContain("terminal_node_quarantined");
    await expect
      .poll(() => terminalWith(open.correlation_id))
      .toMatchObject([{ state: "failed", failure: { code: "terminal_node_quarantined", owner: "node" } }]);
    await reactivate();
    await works(() => atPage?.openTerminal());
  });

  it("TERM-08 an api that hangs when a token is claimed leaves no terminal opening, and the id is found later", async () => {
    const granted = await client(createTerminalToken, {
      params: { allocation_id: shells.allocation.id },
      body: {},
    });
    const api = shells.installation.upFile().children["api"]?.pid ?? 0;
    process.kill(api, "SIGSTOP");
    const socket = new WebSocket(granted.url, [TERMINAL_PROTOCOL, `${TOKEN_PROTOCOL}${granted.token}`]);
    const failure = await new Promise<TerminalError>((resolve, reject) => {
      socket.on("error", reject);
      socket.on("message", (data) => {
        const frame = readServerFrame(String(data));
        if (frame?.type === "error") resolve(frame);
      });
    }).finally(() => process.kill(api, "SIGCONT"));
    expect(failure).toMatchObject({
      code: "terminal_token_unverified",
      hop: "browser_terminal_ws",
      owner: "control plane",
    });
    const { code, correlation_id } = failure;
    await expect
      .poll(() => terminalWith(correlation_id))
      .toMatchObject([{ id: granted.session_id, state: "failed", failure: { code, correlation_id } }]);
    expect((await audited(correlation_id)).map(({ reason }) => reason)).toContain(code);
  });

  it("TERM-09 TERM-01 terminal_token_mint_failed: the node was set to take no new work", async () => {
    const { name } = shells.node;
    onTestFinished(reactivate);
    await shells.json(["node", "drain", name]);
    const why = `The node ${name} is draining and takes no new work.`;
    await fails("terminal_token_mint_failed", { why, owner: "node", ownerInWords: "The operator of the node" });
    await reactivate();
    await works();
  });

  it("TERM-09 TERM-01 terminal_token_mint_failed: the allocation was released", async () => {
    const { id } = shells.allocation;
    onTestFinished(restoreAllocation);
    await shells.json(["allocation", "release", id]);
    // From a bookmark: no page offers a terminal of it any more.
    const url = `${(await shells.up.ready).api_url}/allocations/${id}/terminal`;
    await fails("terminal_token_mint_failed", { why: "released" }, () => atPage?.page.goto(url));
    if (atPage) await expect.poll(() => atPage?.page.getByRole("button", { name: "Try again" }).count()).toBe(0);
    await restoreAllocation();
    await works(() => atPage?.openTerminal());
  });

  it("TERM-10 nothing is left of all these, nor of forty that are dropped abruptly", async () => {
    const { most, left, refused } = await dropTerminals(shells, { terminals: 40, seed: 20_260_401 });
    expect(refused).toEqual([]);
    for (const count of Object.values(most)) expect(count).toBeGreaterThan(0);
    for (const count of Object.values(left)) expect(count).toBe(0);
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
