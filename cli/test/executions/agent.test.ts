// `holdfast agent connect` as a person uses it, at a whole installation: pairing, dispatching, looking at what ran, and what
// is said when something is wrong.

import { existsSync, readFileSync, statSync } from "node:fs";
import { request as askTls } from "node:https";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import type { ExecutionAgent } from "@holdfast/contracts/endpoints/agents";
import type { Execution } from "@holdfast/contracts/endpoints/executions";
import { DISPATCH_TOKEN_HEADER, dispatchPaths, requestIdOf } from "@holdfast/contracts/execution/dispatch";
import { beforeAll, describe, expect, it } from "vitest";
import { countedSteps } from "../../../node-agent/test/support/counted-steps.ts";
import { ask, dispatch, dispatchAsync, dispatchBody, resultOf } from "../../../testkit/gateway/agents.ts";
import { DISPATCH_TOKEN } from "../../../testkit/gateway/gateway.ts";
import { type Started, until } from "../../../testkit/processes/holdfast.ts";
import {
  type ExecutionSite,
  type Host,
  newHost,
  openDatabaseOf,
  openExecutionSite,
  shellStep,
} from "../support/executions.ts";

const WAIT_MS = 100_000;
const echo = { connectorId: "echo", actionId: "echo", input: { say: "hello" } };

let site: ExecutionSite;
let east: { host: Host; agent: Started; id: string; pairing: string[] };

/** Of a command with --json. */
async function json<T>(args: readonly string[]): Promise<T> {
  const { code, stdout, stderr } = await site.installation.run([...args, "--json"]);
  expect([code, stderr]).toEqual([0, ""]);
  return JSON.parse(stdout) as T;
}

const agentNamed = async (name: string): Promise<ExecutionAgent | undefined> =>
  (await site.agents()).find((one) => one.name === name);

/** Its arguments, from the line that `holdfast agent pair` prints for the other machine. */
async function pairingArguments(): Promise<string[]> {
  const { code, stdout } = await site.installation.run(["agent", "pair"]);
  expect(code).toBe(0);
  const [, line = ""] = /^ +holdfast agent connect (.*)$/m.exec(stdout) ?? [];
  return line.split(" ");
}

beforeAll(async () => {
  site = await openExecutionSite();
  const host = newHost(site.installation);
  const pairing = await pairingArguments();
  const agent = host.connect([...pairing, "--name", "east-1", "--tags", "east,group:alpha"]);
  await until(async () => (await agentNamed("east-1"))?.status === "online");
  east = { host, agent, pairing, id: (await agentNamed("east-1"))?.id ?? "" };
});

describe("an agent that was paired with the printed line", () => {
  it("EXEC-08 keeps its credentials to itself, and is in the list", async () => {
    expect(statSync(east.host.credentials).mode & 0o777).toBe(0o600);
    const stored = JSON.parse(readFileSync(east.host.credentials, "utf8")) as Record<string, unknown>;
    expect(stored).toMatchObject({ agentId: east.id, organizationId: site.org, apiBaseUrl: site.ready.api_url });
    const { stdout } = await site.installation.run(["agent", "list"]);
    expect(stdout).toMatch(/east-1 +online +0\/10 +east group:alpha /);
    expect(stdout + east.agent.printed().stdout).not.toContain(String(stored["agentToken"]));
    const { agents } = await json<{ agents: ExecutionAgent[] }>(["agent", "list"]);
    expect(agents).toMatchObject([{ id: east.id, protocolVersion: 1, tags: ["east", "group:alpha"] }]);
  });

  it("EXEC-01 runs what is dispatched, for a caller that waits and for one that asks later", async () => {
    const waited = await dispatch(site, shellStep(site.org, "echo here; echo there >&2"));
    expect(waited).toMatchObject({
      ...{
        status: 200,
        body: { status: "succeeded", output: { backend: "host", exitCode: 0, stdout: "here\n" } },
      },
    });
    const failed = await dispatch(site, shellStep(site.org, "exit 7"));
    expect(failed).toMatchObject({ status: 200, body: { status: "failed", output: { exitCode: 7 } } });
    const echoed = await dispatch(site, dispatchBody(site.org, { payload: echo }));
    expect(echoed).toMatchObject({ status: 200, body: { status: "succeeded", output: { say: "hello" } } });

    const steps = countedSteps();
    const later = shellStep(site.org, steps.script("later"));
    const requestId = requestIdOf(later);
    expect(await dispatchAsync(site, later)).toMatchObject({
      ...{ status: 201, body: { requestId, dispatched: true } },
    });
    await expect.poll(steps.runs).toEqual(["later"]);
    expect(await resultOf(site, requestId)).toMatchObject({ status: 404, body: { code: "RESULT_NOT_READY" } });
    steps.release();
    await expect
      .poll(() => resultOf(site, requestId))
      .toMatchObject({ status: 200, body: { status: "succeeded" } });
  });

  it("EXEC-02 runs the same request once, however often it is dispatched", async () => {
    const steps = countedSteps();
    const body = shellStep(site.org, steps.script("once"));
    const first = [dispatch(site, body), dispatch(site, body)];
    await expect.poll(steps.runs).toEqual(["once"]);
    expect(await dispatchAsync(site, body)).toMatchObject({
      status: 200,
      body: { dispatched: false, cached: true },
    });
    steps.release();
    const [one, other] = await Promise.all(first);
    expect(one).toMatchObject({ status: 200, body: { status: "succeeded" } });
    const again = await dispatch(site, body);
    expect([other?.body, again.body]).toEqual([one?.body, one?.body]);
    expect((await dispatch(site, { ...body, attemptCount: 2 })).body).toMatchObject({ status: "succeeded" });
    expect(steps.runs(), "another attempt is another request").toEqual(["once", "once"]);
  });

  it("EXEC-02 is followed and cancelled with `holdfast execution`", async () => {
    const steps = countedSteps();
    const body = shellStep(site.org, `echo begun; ${steps.script("endless")}`);
    const answer = dispatch(site, body);
    await expect.poll(steps.runs).toEqual(["endless"]);
    const { items } = await json<{ items: Execution[] }>(["execution", "list", "--status", "running"]);
    const [running] = items;
    expect(items).toMatchObject([{ request_id: requestIdOf(body), agent_id: east.id }]);
    const id = running?.id ?? "";
    const following = site.installation.start(["execution", "output", id]);
    await expect.poll(() => following.printed().stdout).toBe("begun\n");
    const group = steps.group();
    expect((await site.installation.run(["execution", "cancel", id])).code).toBe(0);
    expect((await answer).body).toMatchObject({ status: "failed", error: "EXECUTION_CANCELLED" });
    await expect.poll(group).toEqual([]);
    expect(await following.ended).toMatchObject({ code: 0, stdout: "begun\n" });
    const shown = await site.installation.run(["execution", "show", id]);
    expect(shown.stdout).toMatch(/state +cancelled\n +agent +east-1 /);
    expect(await json<Execution>(["execution", "show", id])).toMatchObject({ status: "cancelled" });
    const again = await site.installation.run(["execution", "cancel", id]);
    expect([again.code, again.stderr]).toEqual([1, expect.stringContaining("code execution_ended")]);
  });
});

describe("choosing an agent", () => {
  it("EXEC-03 goes by tag, group and id, and a request waits for the agent that it needs", async () => {
    const nobody = shellStep(site.org, "true", { selectorTag: "group:beta" });
    const refused = await dispatch(site, nobody);
    expect(refused).toMatchObject({ status: 503, body: { code: "NO_AGENT_AVAILABLE" } });
    const { agents } = (refused.body["details"] ?? {}) as { agents?: object[] };
    expect(agents).toEqual([
      {
        ...{ agent_id: east.id, name: "east-1", reason: "tag_missing" },
        message: "It does not have the tag group:beta. Its tags: east, group:alpha.",
      },
    ]);
    expect(await dispatchAsync(site, nobody)).toMatchObject({ status: 503, body: { code: "NO_AGENT_AVAILABLE" } });

    const patient = shellStep(site.org, "echo $PWD", { selectorTag: "group:beta", waitMs: WAIT_MS });
    const answer = dispatch(site, patient);
    const west = newHost(site.installation);
    west.connect([...(await pairingArguments()), "--name", "west-1", "--tags", "west,group:beta"]);
    expect(await answer).toMatchObject({ status: 200, body: { status: "succeeded" } });
    const westId = (await agentNamed("west-1"))?.id;
    const chosenFor = async (selector: object) => {
      const body = shellStep(site.org, "true", selector);
      await dispatch(site, body);
      const { items } = await json<{ items: Execution[] }>(["execution", "list", "--limit", "1"]);
      expect(items).toMatchObject([{ request_id: requestIdOf(body) }]);
      return items[0]?.agent_name;
    };
    expect(await chosenFor({ selectorTag: "east" })).toBe("east-1");
    expect(await chosenFor({ selectorTag: "group:alpha" })).toBe("east-1");
    expect(await chosenFor({ selectorTag: "west" })).toBe("west-1");
    expect(await chosenFor({ selectorAgentId: westId })).toBe("west-1");
  });

  it("EXEC-05 ends with 503 when the time to wait is over", async () => {
    const body = shellStep(site.org, "true", { selectorTag: "nobody", waitMs: 200 });
    expect(await dispatch(site, body)).toMatchObject({ status: 503, body: { code: "NO_AGENT_AVAILABLE" } });
  });
});

describe("dispatching", () => {
  it("EXEC-05 needs the dispatch token", async () => {
    const steps = countedSteps();
    const body = shellStep(site.org, steps.script("never"));
    for (const path of [dispatchPaths.dispatch, dispatchPaths.dispatchAsync]) {
      for (const token of ["wrong", null])
        expect(await ask(site, path, { body, token })).toMatchObject({
          status: 401,
          body: { code: "UNAUTHORIZED" },
        });
    }
    const result = await ask(site, `${dispatchPaths.results}/x`, { token: "wrong" });
    expect(result).toMatchObject({ status: 401, body: { code: "UNAUTHORIZED" } });
    expect(await dispatch(site, { ...body, attemptCount: 0 })).toMatchObject({
      ...{ status: 400, body: { code: "BAD_REQUEST" } },
    });
    expect(steps.runs()).toEqual([]);
  });

  it("SEC-04 is refused at every other listener, with the right token too", async () => {
    const { gateway_url, api_url, node_api_url, api_internal_url, node_terminal_url } = site.ready;
    const { gateway } = await json<{ gateway: { internal_url: string } }>(["status"]);
    expect(gateway.internal_url).toBe(site.internalUrl);
    const steps = countedSteps();
    for (const path of [dispatchPaths.dispatch, dispatchPaths.dispatchAsync]) {
      const body = shellStep(site.org, steps.script("never"));
      const atGateway = await ask({ internalUrl: gateway_url }, path, { body });
      expect([atGateway.status, atGateway.text]).toEqual([404, expect.stringContaining("gateway.internal_url")]);
      const atApi = await fetch(`${api_url}${path}`, {
        ...{ method: "POST", body: JSON.stringify(body) },
        headers: { [DISPATCH_TOKEN_HEADER]: DISPATCH_TOKEN, "content-type": "application/json" },
      });
      expect(atApi.status).toBe(404);
      const overTls = [node_api_url, api_internal_url, node_terminal_url];
      const statuses = await Promise.all(overTls.map((url) => statusOverTls(url, path, body)));
      // The api's ask who it is before they look at the path.
      expect(statuses).toEqual([401, 401, 404]);
    }
    expect(steps.runs()).toEqual([]);
  });
});

describe("pairing", () => {
  const failure = async (args: readonly string[]) => {
    const host = newHost(site.installation);
    const { code, stderr } = await host.connect(args).ended;
    expect(existsSync(host.credentials)).toBe(false);
    return [code, stderr];
  };

  it("EXEC-08 fails with a token that is unknown, was used or has expired, and says what to do", async () => {
    const [option = "", , ...place] = east.pairing;
    const invalid = [
      1,
      expect.stringMatching(
        /malformed, unknown or was used before.*\n.*`holdfast agent pair`.*\n.*PAIRING_TOKEN_INVALID/,
      ),
    ];
    expect(await failure([option, `${site.org}.hfx_unknown`, ...place])).toEqual(invalid);
    expect(await failure(east.pairing), "it is another machine's").toEqual(invalid);
    const late = await pairingArguments();
    await openDatabaseOf(site.installation)`
      UPDATE execution_pairing_tokens SET expires_at = now() - interval '1 second' WHERE used_at IS NULL`;
    expect(await failure(late)).toEqual([
      1,
      expect.stringMatching(/has expired\.\n {2}Create a new pairing token.*\n.*PAIRING_TOKEN_EXPIRED/),
    ]);
  });

  it("EXEC-07 is no longer worth anything when the agent is revoked, and the agent says what to check", async () => {
    expect(await site.installation.run(["agent", "revoke", "east-1"])).toMatchObject({
      ...{ code: 0, stdout: `Agent east-1 (${east.id}) revoked.\n` },
    });
    const advice = /agent token has the form <organization id>\.<secret> .* has not been revoked/;
    const log = () => east.agent.printed().stdout;
    await expect.poll(log).toMatch(new RegExp(`${advice.source}.*the agent was revoked"`));
    // By the news of it: what is noticed later is for news that were lost.
    const gateway = readFileSync(join(site.installation.dataDir, "logs/gateway.log"), "utf8");
    const closes = gateway.split("\n").filter((line) => line.includes("its token is no longer accepted"));
    expect(closes.map((line) => JSON.parse(line))).toMatchObject([{ agent_id: east.id, noticed: "news" }]);
    east.agent.process.kill("SIGTERM");
    expect((await east.agent.ended).code).toBe(0);
    const again = east.host.connect();
    await expect
      .poll(() => again.printed().stdout)
      .toMatch(new RegExp(`${advice.source}.*refused the agent token \\(status 401\\)`));
    expect((await site.installation.run(["agent", "list"])).stdout).not.toContain("east-1");
    expect((await site.installation.run(["agent", "list", "--all"])).stdout).toMatch(/east-1 +revoked /);
    const refused = await dispatch(site, shellStep(site.org, "true", { selectorAgentId: east.id }));
    expect(refused).toMatchObject({ status: 503, body: { code: "NO_AGENT_AVAILABLE" } });
  });
});

/** Without a certificate, as anybody can. */
function statusOverTls(url: string, path: string, body: object): Promise<number | string> {
  return new Promise((resolve) => {
    const headers = { [DISPATCH_TOKEN_HEADER]: DISPATCH_TOKEN, "content-type": "application/json" };
    const asked = askTls(`${url}${path}`, { method: "POST", headers, rejectUnauthorized: false, agent: false });
    asked.on("response", async (response) => {
      await text(response);
      resolve(response.statusCode ?? 0);
    });
    asked.on("error", (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
    asked.end(JSON.stringify(body));
  });
}
