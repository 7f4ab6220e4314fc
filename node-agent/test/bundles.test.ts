// Recovery bundles on hosts, with the real api: what is refused, what is tried, what is replaced and what stays.

import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { listAudit } from "@holdfast/contracts/endpoints/audit";
import { listBundles, revokeBundle } from "@holdfast/contracts/endpoints/bundles";
import { createEnrollmentToken } from "@holdfast/contracts/endpoints/enrollment";
import { changeNode, getNode } from "@holdfast/contracts/endpoints/nodes";
import { createTask } from "@holdfast/contracts/endpoints/tasks";
import { beforeAll, describe, expect, it } from "vitest";
import { someFacts } from "../../testkit/agent/facts.ts";
import { makeAuthority } from "../../testkit/agent/fake-authority.ts";
import { createOrg, startTestApi, type TestApi } from "../../testkit/api/api.ts";
import { endedTask } from "../../testkit/api/ended-task.ts";
import { BundleRefused } from "../src/bundle/read.ts";
import { commit, finish, finishInterrupted, revert } from "../src/bundle/settle.ts";
import { type Disk, disk, readPast, readStaged, stagedPath } from "../src/bundle/staged.ts";
import { tryBundle } from "../src/bundle/trial.ts";
import { explain, lookAt } from "../src/diagnostics/explain.ts";
import { readAgentFile, writeAgentFile } from "../src/identity/agent-file.ts";
import { parseIdentity, readIdentity } from "../src/identity/identity-file.ts";
import { join } from "../src/identity/join.ts";
import { stateFiles } from "../src/identity/state-directory.ts";
import { writeTrust } from "../src/identity/trust-file.ts";
import { readRecoveryFile } from "../src/recovery/state-file.ts";
import {
  applyLineTo,
  applyTo,
  bundleFor,
  type Created,
  copyOf,
  envOf,
  type Host,
  joinedHost,
  OLD_ENV,
  OLD_UNIT,
  runAgentOn,
  setOf,
  trialHost,
  unitOf,
} from "./support/bundles.ts";

let api: TestApi;
let client: ReturnType<TestApi["operator"]>;

beforeAll(async () => {
  api = await startTestApi();
  client = api.operator((await createOrg(api, "agents")).id);
});

const newHost = () => joinedHost(client, api.nodeUrl);
const serialOn = ({ stateDir }: Host) => readIdentity(stateFiles(stateDir)).certificate.serial;
const nodeOf = (nodeId: string) => client(getNode, { params: { node_id: nodeId } });

/** The trial itself has sent a heartbeat; only the agent completes a task. */
async function connectedWith(host: Host): Promise<void> {
  await expect.poll(() => nodeOf(host.nodeId)).toMatchObject({ status: "active" });
  const body = { type: "node.noop", params: { echo: "alive" } };
  const { id } = await client(createTask, { params: { node_id: host.nodeId }, body });
  expect(await endedTask(client, id)).toMatchObject({ status: "completed", result: { echo: "alive" } });
  await expect
    .poll(() => nodeOf(host.nodeId))
    .toMatchObject({ connection: "online", certificate: { serial: serialOn(host) } });
}

async function switched({ stateDir }: Host, before: string): Promise<void> {
  const files = stateFiles(stateDir);
  await expect.poll(() => existsSync(files.identity) && serialOn({ stateDir } as Host) !== before).toBe(true);
  await expect.poll(() => existsSync(stagedPath(files))).toBe(false);
}

function refusal(work: () => unknown): string {
  try {
    work();
    return "it was not refused";
  } catch (error) {
    if (error instanceof BundleRefused) return error.code;
    throw error;
  }
}

const actionsOf = async ({ correlation_id }: Created) =>
  (await client(listAudit, { query: { correlation_id } })).items.map(({ action }) => action).toReversed();

describe("a recovery bundle on its host", () => {
  it("ID-08 gives a node with a lost key a new identity, with everything under one correlation id", async () => {
    const host = await newHost();
    const files = stateFiles(host.stateDir);
    const before = serialOn(host);
    rmSync(files.identity);
    const running = await runAgentOn(host);
    const created = await bundleFor(client, host.nodeId);
    const staged = applyTo(host, created);
    expect(staged.applied.before).toMatchObject({ profile: { name: "default" } });
    await switched(host, before);
    await connectedWith(host);
    expect(running.isAlive()).toBe(true);
    expect(await actionsOf(created)).toEqual(["node.bundle_create", "node.recover", "node.bundle_apply"]);
    const [listed] = (await client(listBundles, {})).items;
    expect(listed).toMatchObject({ id: created.id, state: "used", applied_at: staged.applied.applied_at });
    expect(readRecoveryFile(files, host.nodeId).token).toMatchObject({ token: expect.stringMatching(/^hfr_/) });
    expect(running.logged()).not.toMatch(/hfu_[\w-]{20}/);
    const picture = lookAt(host.stateDir, { now: Date.now(), diskPressurePercent: 99 });
    expect(picture.bundle).toMatchObject({ id: created.id, seq: 1, state: "applied" });
    expect(explain(picture, Date.now()).join("\n")).toMatch(/recovery bundle 1 of .* has worked and is in force/);
    expect(refusal(() => applyTo(host, created))).toBe("bundle_already_applied");
  });

  it("ID-07 rewrites endpoints, roots and settings together on a host whose own are all stale", async () => {
    const host = await newHost();
    const files = stateFiles(host.stateDir);
    const before = serialOn(host);
    const { rootPem } = await makeAuthority();
    writeTrust(files, [rootPem]);
    writeFileSync(files.recoveryRoots, rootPem);
    const agent = readAgentFile(files);
    if (!agent) throw new Error("a node");
    const endpoints = { node_api: "https://127.0.0.1:9", recovery: "https://127.0.0.1:9" };
    writeAgentFile(files, {
      ...{ ...agent, api_url: "https://127.0.0.1:9", recovery_api_url: "https://127.0.0.1:9" },
      profile: { ...agent.profile, endpoints, ca_sha256: [] },
    });
    writeFileSync(files.next, JSON.stringify({ roots: [rootPem] }));
    const created = await bundleFor(client, host.nodeId);
    expect(refusal(() => applyTo(host, created))).toBe("bundle_untrusted");
    expect(refusal(() => applyTo(host, created, { rootSha256: "0".repeat(64) }))).toBe("bundle_untrusted");
    applyLineTo(host, created.line);
    // As the service manager read it from the settings file, before the bundle removed it there.
    await runAgentOn(host, { HOLDFAST_NODE_API_URL: "https://127.0.0.1:9" });
    await switched(host, before);
    await connectedWith(host);
    expect(existsSync(files.next)).toBe(false);
    expect(readFileSync(files.trust, "utf8")).toBe(readFileSync(files.recoveryRoots, "utf8"));
    expect(readAgentFile(files)).toMatchObject({ api_url: api.nodeUrl, recovery_api_url: api.nodeUrl });
    expect(unitOf(host)).toContain("RuntimeDirectoryPreserve=yes");
    expect(envOf(host)).toBe("# ours\nHOLDFAST_NODE_PROVIDER=acme\n");
  });

  it("ID-08 brings the same node back on a host that lost its state, if it is named", async () => {
    const host = await newHost();
    const before = serialOn(host);
    rmSync(host.stateDir, { recursive: true });
    const created = await bundleFor(client, host.nodeId);
    const rootSha256 = created.root_sha256;
    expect(refusal(() => applyTo(host, created, { rootSha256 }))).toBe("bundle_no_state");
    expect(refusal(() => applyTo(host, created, { rootSha256, newState: true }))).toBe("bundle_no_state");
    expect(refusal(() => applyTo(host, created, { rootSha256, newState: true, node: "other" }))).toBe(
      "bundle_wrong_host",
    );
    const staged = applyTo(host, created, { rootSha256, newState: true, node: host.nodeId });
    expect(staged.applied.before).toBeNull();
    const picture = lookAt(host.stateDir, { now: Date.now(), diskPressurePercent: 99 });
    expect(explain(picture, Date.now()).join("\n")).toMatch(/recovery bundle 1 of .* is being tried/);
    await runAgentOn(host);
    await switched(host, before);
    await connectedWith(host);
    expect(await actionsOf(created)).toContain("node.bundle_apply");
  });

  it("ID-07 is refused on the wrong host, when it was changed, has expired, or is older than the one in force", async () => {
    const [host, other] = [await newHost(), await newHost()];
    const [first, second] = [await bundleFor(client, host.nodeId), await bundleFor(client, host.nodeId)];
    const set = setOf(host);
    expect(refusal(() => applyTo(other, first))).toBe("bundle_wrong_host");
    expect(refusal(() => applyTo(other, first, { newState: true, node: host.nodeId }))).toBe("bundle_wrong_host");
    const changed = structuredClone(first);
    changed.bundle.content.profile.endpoints["node_api"] = "https://evil.example.com";
    expect(refusal(() => applyTo(host, changed))).toBe("bundle_tampered");
    const resigned = { ...first, bundle: (await makeAuthority()).sign(first.bundle) as Created["bundle"] };
    expect(refusal(() => applyTo(host, resigned))).toBe("bundle_untrusted");
    const later = Date.parse(first.expires_at);
    expect(refusal(() => applyTo(host, first, { now: later }))).toBe("bundle_expired");
    expect(refusal(() => applyLineTo(host, first.line.slice(0, -40)))).toMatch(/^bundle_(unreadable|tampered)$/);
    expect(refusal(() => applyLineTo(host, "hfe_something"))).toBe("bundle_unreadable");
    expect(existsSync(stagedPath(stateFiles(host.stateDir)))).toBe(false);
    expect([setOf(host), unitOf(host), envOf(host)]).toEqual([set, OLD_UNIT, OLD_ENV]);
    applyTo(host, second);
    expect(refusal(() => applyTo(host, first))).toBe("bundle_older");
    await runAgentOn(host);
    await switched(host, parseIdentity(set[0] ?? "", "").certificate.serial);
    expect(refusal(() => applyTo(host, first))).toBe("bundle_older");
  });

  it("ID-07 goes back to the previous set when the server refuses it, and only before it has worked", async () => {
    const host = await newHost();
    const files = stateFiles(host.stateDir);
    const set = setOf(host);
    const refused = await bundleFor(client, host.nodeId);
    await client(revokeBundle, { params: { bundle_id: refused.id } });
    const running = await runAgentOn(host);
    applyTo(host, refused);
    expect(envOf(host)).not.toContain("HOLDFAST_NODE_API_URL");
    await expect.poll(() => readPast(files)[0]?.reverted).toContain("bundle_revoked");
    await expect.poll(() => existsSync(stagedPath(files))).toBe(false);
    expect([setOf(host), unitOf(host), envOf(host)]).toEqual([set, OLD_UNIT, OLD_ENV]);
    expect(running.logged()).toContain("was given up");
    await connectedWith(host);

    const accepted = await bundleFor(client, host.nodeId);
    const staged = applyTo(host, accepted);
    await switched(host, parseIdentity(set[0] ?? "", "").certificate.serial);
    expect(() => revert(files, { ...staged, committed: { apiUrl: api.nodeUrl } }, "too late")).toThrow(
      /another bundle/,
    );
    await connectedWith(host);
  });

  it("ID-07 keeps trying while the server cannot be reached, and makes room for a newer bundle", async () => {
    const host = await newHost();
    const before = serialOn(host);
    const [first, second] = [await bundleFor(client, host.nodeId), await bundleFor(client, host.nodeId)];
    const staged = applyTo(host, first);
    // As if the address in the bundle led nowhere: it is stored already, so its signature is not asked again.
    const { content } = staged.bundle;
    content.profile.endpoints = { node_api: "https://127.0.0.1:9" };
    content.api_url = "https://127.0.0.1:9";
    const files = stateFiles(host.stateDir);
    disk.write(stagedPath(files), JSON.stringify(staged), 0o600);
    const running = await runAgentOn(host);
    await expect.poll(() => running.logged().match(/recovery bundle 1: /g)?.length ?? 0).toBeGreaterThan(2);
    expect(serialOn(host)).toBe(before);
    applyTo(host, second);
    await switched(host, before);
    await connectedWith(host);
    expect(readPast(files).map(({ seq, reverted }) => [seq, reverted !== null])).toEqual([
      [2, false],
      [1, true],
    ]);
  });
});

class Crash extends Error {}

/** Dies at one of the steps, before or after it has reached the disk. */
function crashingAt(step: number, when: "before" | "after"): Disk & { steps: number } {
  const run = (act: () => void) => {
    const present = crashing.steps;
    // The dead do nothing more.
    if (present > step || (present === step && when === "before")) throw new Crash();
    crashing.steps += 1;
    act();
    if (present === step) throw new Crash();
  };
  const crashing: Disk & { steps: number } = {
    steps: 0,
    write: (path, content, mode) => run(() => disk.write(path, content, mode)),
    remove: (path) => run(() => disk.remove(path)),
  };
  return crashing;
}

const died = (work: () => unknown): boolean => {
  try {
    work();
    return false;
  } catch (error) {
    if (error instanceof Crash) return true;
    throw error;
  }
};

describe("a crash while a recovery bundle is applied", () => {
  it("ID-07 leaves the old set or the new one at every step, and the next start goes on, however often it dies", async () => {
    const original = await newHost();
    const old = setOf(original);
    let crashes = 0;
    for (let step = 0; ; step += 1) {
      let ended = false;
      for (const when of ["before", "after"] as const) {
        const host = copyOf(original);
        const files = stateFiles(host.stateDir);
        const created = await bundleFor(client, host.nodeId);
        const to = crashingAt(step, when);
        try {
          applyTo(host, created, { disk: to });
          const staged = readStaged(files);
          if (!staged) throw new Error("nothing was stored");
          finish(files, await tryBundle(files, staged, trialHost({ disk: to })), to);
          ended = true;
        } catch (error) {
          if (!(error instanceof Crash)) throw error;
          crashes += 1;
        }
        // Every later start dies one step further.
        for (let again = 0; died(() => finishInterrupted(files, crashingAt(again, when))); again += 1);
        finishInterrupted(files);
        const staged = readStaged(files);
        const issued = readIdentity(files);
        if (staged || issued.chainPem === parseIdentity(old[0] ?? "", "").chainPem) {
          expect(setOf(host), `${when} step ${step}`).toEqual(old);
        }
        const current = staged ?? (isDone(host, created) ? undefined : applyTo(host, created));
        if (current) finish(files, await tryBundle(files, current, trialHost()));
        expect(isDone(host, created)).toBe(true);
        const agent = readAgentFile(files);
        expect(agent).toMatchObject({ node_id: host.nodeId, recovery_api_url: api.nodeUrl });
        expect(serialOn(host)).toBe((await nodeOf(host.nodeId)).certificate?.serial);
        expect(envOf(host)).toBe("# ours\nHOLDFAST_NODE_PROVIDER=acme\n");
        expect(unitOf(host)).not.toBe(OLD_UNIT);
      }
      if (ended) break;
    }
    expect(crashes).toBeGreaterThan(24);
  });

  const isDone = ({ stateDir }: Host, { id }: Created) =>
    readPast(stateFiles(stateDir)).some((one) => one.id === id && one.reverted === null);

  it("ID-07 finishes a revert that was interrupted, too", async () => {
    const original = await newHost();
    const set = setOf(original);
    for (let step = 0; step < 4; step += 1) {
      const host = copyOf(original);
      const files = stateFiles(host.stateDir);
      const staged = applyTo(host, await bundleFor(client, host.nodeId));
      expect(died(() => revert(files, staged, "refused", crashingAt(step, "after")))).toBe(true);
      revert(files, staged, "refused");
      expect([setOf(host), unitOf(host), envOf(host)]).toEqual([set, OLD_UNIT, OLD_ENV]);
      expect(readStaged(files)).toBeUndefined();
    }
  });

  it("ID-07 never replaces anything by a bundle that has not worked", async () => {
    const host = await newHost();
    const files = stateFiles(host.stateDir);
    const staged = applyTo(host, await bundleFor(client, host.nodeId));
    expect(() => finish(files, commit(files, staged, api.nodeUrl))).toThrow("has not worked");
  });
});

describe("a host that was a node before", () => {
  it("ID-09 joins anew as another node after its node was retired, and the old bundle does nothing there", async () => {
    const host = await newHost();
    const created = await bundleFor(client, host.nodeId);
    await client(changeNode, { params: { node_id: host.nodeId }, body: { change: "retire" } });
    // Leftovers of the retired node are still in the state directory, with a bundle that was being tried.
    applyTo(host, created);
    const running = await runAgentOn(host);
    const files = stateFiles(host.stateDir);
    await expect.poll(() => readPast(files)[0]?.reverted).toContain("node_retired");
    await running.stop();
    const { token } = await client(createEnrollmentToken, { body: {} });
    const options = { token, apiUrl: api.nodeUrl, stateDir: host.stateDir, facts: someFacts };
    const rejoined = await join({ ...options, force: true });
    expect(rejoined.nodeId).not.toBe(host.nodeId);
    await runAgentOn(host);
    await connectedWith({ ...host, nodeId: rejoined.nodeId });
    expect(refusal(() => applyTo(host, created))).toBe("bundle_wrong_host");
  });

  it("ID-09 is not turned back into the node of a bundle that was applied before it joined anew", async () => {
    const host = await newHost();
    const files = stateFiles(host.stateDir);
    const staged = applyTo(host, await bundleFor(client, host.nodeId));
    await tryBundle(files, staged, trialHost());
    expect(readStaged(files)?.committed).toBeDefined();
    const { token } = await client(createEnrollmentToken, { body: {} });
    const { stateDir } = host;
    const rejoined = await join({ token, apiUrl: api.nodeUrl, stateDir, facts: someFacts, force: true });
    finishInterrupted(files);
    expect(readIdentity(files).nodeId).toBe(rejoined.nodeId);
  });
});
