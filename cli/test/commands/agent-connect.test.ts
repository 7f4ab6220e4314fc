// `holdfast agent connect` as a process of its own, against a stand-in gateway that pairs and dispatches.

import { once } from "node:events";
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { describe, expect, it } from "vitest";
import { countedSteps } from "../../../node-agent/test/support/counted-steps.ts";
import { hostBackend } from "../../../node-agent/test/support/host-backend.ts";
import { type StandInGateway, startStandInGateway } from "../../../node-agent/test/support/stand-in-gateway.ts";
import { atEnd } from "../../../testkit/lifetime/at-end.ts";
import { openInstallation } from "../../../testkit/processes/holdfast.ts";

const installation = openInstallation();
atEnd(() => installation.cleanUp());

async function host() {
  const gateway = await startStandInGateway();
  const home = mkdtempSync(join(tmpdir(), "holdfast-home-"));
  atEnd(() => rmSync(home, { recursive: true, force: true, maxRetries: 10 }));
  const own = join(home, ".holdfast/agent.json");
  const connect = (args: string[] = [], env: Record<string, string> = {}) =>
    installation.start(["agent", "connect", ...args], { HOME: home, ...hostBackend, ...env });
  const stored = () => JSON.parse(readFileSync(own, "utf8")) as Record<string, unknown>;
  return { gateway, home, own, connect, stored };
}

const pairing = (gateway: StandInGateway, token = gateway.pairingToken()) => [
  ...["--pairing-token", token, "--api-base", gateway.url],
];

describe("holdfast agent connect", () => {
  it("EXEC-08 pairs, keeps its credentials in one file of its own, and runs steps", async () => {
    const { gateway, own, connect, stored } = await host();
    const more = ["--tags", "east, group:alpha,east", "--name", "edge-1", "--max-in-flight", "3"];
    const { process, ended } = connect([...pairing(gateway), ...more]);
    const socket = await gateway.socket();
    const capabilities = {
      ...{ kinds: ["connector.action", "agent.execute"], connectors: ["echo"] },
      ...{ tags: ["east", "group:alpha"], maxInFlight: 3 },
    };
    expect(gateway.pairings).toMatchObject([{ name: "edge-1", agentVersion: expect.any(String), capabilities }]);
    expect(socket.hello).toMatchObject({ name: "edge-1", capabilities, keySetVersion: 1 });
    expect(statSync(own).mode & 0o777).toBe(0o600);
    const { agentId, agentToken, organizationId, wsUrl, url } = gateway;
    expect(stored()).toMatchObject({
      ...{
        agentId,
        agentToken,
        organizationId,
        gatewayWsUrl: wsUrl,
        apiBaseUrl: url,
        name: "edge-1",
        capabilities,
      },
    });
    const order = gateway.shell("echo over there");
    socket.send(order);
    expect(await gateway.result(order.requestId)).toMatchObject({
      output: { backend: "host", stdout: "over there\n" },
    });
    process.kill("SIGTERM");
    const { code, stdout, stderr } = await ended;
    expect([code, stderr]).toEqual([0, ""]);
    expect(stdout).toContain('"msg":"connected"');
    expect(stdout).not.toContain(agentToken);
  });

  it("EXEC-08 connects again without a token, or with the one that it was paired with", async () => {
    const { gateway, connect } = await host();
    const arguments_ = pairing(gateway);
    const first = connect([...arguments_, "--tags", "east"]);
    const socket = await gateway.socket();
    first.process.kill("SIGTERM");
    await first.ended;
    const second = connect(arguments_);
    const next = await gateway.socket(socket);
    second.process.kill("SIGTERM");
    await second.ended;
    connect();
    const last = await gateway.socket(next);
    expect(last.hello?.capabilities.tags).toEqual(["east"]);
    expect(gateway.pairings).toHaveLength(1);
  });

  it("EXEC-08 replaces nothing by a pairing that fails, and says what to do", async () => {
    const { gateway, own, connect } = await host();
    const first = connect(pairing(gateway));
    await gateway.socket();
    first.process.kill("SIGTERM");
    await first.ended;
    const before = readFileSync(own, "utf8");
    const invalid = await connect(pairing(gateway, `${gateway.organizationId}.hfx_unknown`)).ended;
    expect([invalid.code, invalid.stderr]).toEqual([1, expect.stringContaining("code PAIRING_TOKEN_INVALID")]);
    const expired = await connect(pairing(gateway, gateway.pairingToken("expired"))).ended;
    expect([expired.code, expired.stderr]).toEqual([
      1,
      expect.stringMatching(/has expired.\n {2}Create a new pairing token/),
    ]);
    const away = await connect(["--pairing-token", "x.y", "--api-base", "http://127.0.0.1:1"]).ended;
    expect([away.code, away.stderr]).toEqual([3, expect.stringContaining("http://127.0.0.1:1 cannot be reached")]);
    const elsewhere = createServer((_request, response) => {
      response
        .writeHead(404)
        .end(JSON.stringify({ code: "route_not_found", next_step: "Check method and path." }));
    });
    await once(elsewhere.listen(0, "127.0.0.1"), "listening");
    atEnd(() => elsewhere.close());
    const { port } = elsewhere.address() as AddressInfo;
    const other = await connect(["--pairing-token", "x.y", "--api-base", `http://127.0.0.1:${port}`]).ended;
    expect([other.code, other.stderr]).toEqual([1, expect.stringMatching(/status 404.*\n {2}Check --api-base/)]);
    expect(readFileSync(own, "utf8")).toBe(before);
  });

  it("EXEC-08 uses credentials of the system that it follows, pins the keys of its first connection, and changes nothing there", async () => {
    const { gateway, home, connect } = await host();
    const path = join(home, ".vespid/agent.json");
    mkdirSync(dirname(path));
    const { keySet: _, ...credentials } = gateway.credentials();
    const capabilities = { kinds: ["agent.execute"], connectors: ["github"], tags: ["west"] };
    const text = JSON.stringify({ ...credentials, capabilities });
    writeFileSync(path, text, { mode: 0o600 });
    const first = connect();
    const socket = await gateway.socket();
    expect(socket.hello).toMatchObject({
      name: "test-agent",
      capabilities: { connectors: ["echo"], tags: ["west"] },
    });
    expect(socket.hello).not.toHaveProperty("keySetVersion");
    const order = gateway.order();
    socket.send(order);
    expect(await gateway.result(order.requestId)).toMatchObject({ status: "succeeded" });
    first.process.kill("SIGTERM");
    expect((await first.ended).stdout).toContain("pinned the signing keys of the first connection");
    expect(readFileSync(path, "utf8")).toBe(text);
    connect();
    expect((await gateway.socket(socket)).hello).toMatchObject({ keySetVersion: 1 });
  });

  it("EXEC-08 refuses to start with credentials that others may read, or with none", async () => {
    const { gateway, own, connect } = await host();
    expect((await connect().ended).stderr).toMatch(
      /not paired: there are no credentials in .*agent connect --pairing-token/,
    );
    mkdirSync(dirname(own));
    writeFileSync(own, JSON.stringify(gateway.credentials()));
    chmodSync(own, 0o644);
    const { code, stderr } = await connect().ended;
    expect([code, stderr]).toEqual([2, expect.stringContaining(`chmod 600 ${own}`)]);
    expect(stderr).not.toContain(gateway.agentToken);
  });

  it("EXEC-06 finishes what runs on the first signal, and ends it at once on the second", async () => {
    const { gateway, connect } = await host();
    const first = connect(pairing(gateway));
    const socket = await gateway.socket();
    const polite = countedSteps();
    const order = gateway.shell(polite.script("one"));
    socket.send(order);
    await expect.poll(polite.runs).toEqual(["one"]);
    first.process.kill("SIGINT");
    await expect.poll(() => socket.of("drain")).toHaveLength(1);
    polite.release();
    expect((await first.ended).code).toBe(0);
    expect(gateway.resultOf(order.requestId)).toMatchObject({ status: "succeeded" });

    const second = connect();
    const next = await gateway.socket(socket);
    const stubborn = countedSteps();
    const interrupted = gateway.shell(`sleep 1000 & ${stubborn.script("two")}`);
    next.send(interrupted);
    await expect.poll(stubborn.runs).toEqual(["two"]);
    const group = stubborn.group();
    second.process.kill("SIGTERM");
    await expect.poll(() => next.of("drain")).toHaveLength(1);
    second.process.kill("SIGTERM");
    expect((await second.ended).code).toBe(130);
    await expect.poll(group).toEqual([]);
    connect();
    await gateway.socket(next);
    expect(await gateway.result(interrupted.requestId)).toMatchObject({
      ...{ status: "failed", error: expect.stringContaining("the agent was restarted while the step ran") },
    });
    expect(stubborn.runs()).toEqual(["two"]);
  });

  it("EXEC-02 killed while a script runs, ends the script at its next start, and reports it as failed", async () => {
    const { gateway, connect } = await host();
    const first = connect(pairing(gateway));
    const socket = await gateway.socket();
    const steps = countedSteps();
    const order = gateway.shell(`sleep 1000 & setsid sleep 1000 & ${steps.script("one")}`);
    socket.send(order);
    await expect.poll(steps.runs).toEqual(["one"]);
    const group = steps.group();
    first.process.kill("SIGKILL");
    await first.ended;
    expect(group().length).toBeGreaterThan(0);
    connect();
    const next = await gateway.socket(socket);
    expect(next.hello?.holding).toEqual([{ requestId: order.requestId, generation: 1 }]);
    expect(await gateway.result(order.requestId)).toMatchObject({
      ...{ status: "failed", error: expect.stringContaining("the agent was restarted while the step ran") },
    });
    expect(group()).toEqual([]);
    expect(steps.runs()).toEqual(["one"]);
  });

  it("EXEC-02 runs once on one set of credentials", async () => {
    const { gateway, connect } = await host();
    connect(pairing(gateway));
    await gateway.socket();
    const { code, stderr } = await connect().ended;
    expect([code, stderr]).toEqual([
      2,
      expect.stringMatching(/Another agent \(pid \d+\).*pair this one as another agent: .*--credentials/),
    ]);
  });

  it.for([
    [["--max-in-flight", "0"], /whole number from 1 to 1000/],
    [["--connectors", "pager"], /no connector pager/],
    [["--pairing-token", "x.y"], /--api-base is missing/],
    [["--tags", "x".repeat(129)], /up to 128 characters/],
  ] as const)("EXEC-08 refuses what makes no sense: %j", async ([args, why]) => {
    const { connect } = await host();
    const { code, stderr } = await connect([...args]).ended;
    expect([code, stderr]).toEqual([2, expect.stringMatching(why)]);
  });
});
