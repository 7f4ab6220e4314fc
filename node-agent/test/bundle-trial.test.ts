// The trial of a recovery bundle against the API's faulty twin: what counts as working, and what is repeated after a lost
// response.

import type { RecoveryBundle } from "@holdfast/contracts/node/recovery-bundle";
import { uuidv7 } from "@holdfast/kit/uuid";
import { beforeEach, describe, expect, it } from "vitest";
import { joinedDirectory } from "../../testkit/agent/agent.ts";
import { applyBundle } from "../src/bundle/apply.ts";
import { parseFile } from "../src/bundle/read.ts";
import { disk, readStaged, type Staged, stagedPath } from "../src/bundle/staged.ts";
import { tryBundle } from "../src/bundle/trial.ts";
import { type StateFiles, stateFiles } from "../src/identity/state-directory.ts";
import { LinkFailure } from "../src/link/failures.ts";
import { trialHost } from "./support/bundles.ts";
import { type FakeApi, type Fault, startFakeApi } from "./support/fake-api.ts";

let api: FakeApi;
let files: StateFiles;

beforeEach(async () => {
  api = await startFakeApi();
  const stateDir = await joinedDirectory(api);
  files = stateFiles(stateDir);
  applyBundle(parseFile(JSON.stringify(bundleOf(api))), { stateDir });
});

function bundleOf({ authority, nodeId, profile, verifiers, recovery, url }: FakeApi): RecoveryBundle {
  const { token, issued_at, expires_at } = recovery.issue();
  const state = { profile: { name: profile.name, version: profile.version }, key_set: 1, trust_bundle: 1 };
  return authority.sign({
    kind: "recovery_bundle" as const,
    version: 1,
    content: {
      ...{ bundle_id: uuidv7(), seq: 1, node: { id: nodeId, org_id: uuidv7(), name: "gpu-1" }, token },
      ...{ issued_at, expires_at, issued_by: "an operator", correlation_id: uuidv7(), incident_id: null },
      ...{ api_url: url, profile, trust_bundle: { version: 1, roots: [authority.rootPem] } },
      ...{ key_set: { version: 1, ...verifiers }, agent: null },
      files: {
        unit: { path: "/etc/systemd/system/holdfast-agent.service", content: "" },
        env: { path: "/etc/holdfast/agent.env", content: "", unset: [] },
      },
      ...{ before: { ...state, hostname: null }, after: state },
    },
  });
}

const staged = () => readStaged(files) as Staged;
const attempt = () => tryBundle(files, staged(), trialHost());
const unavailable: Fault = { do: "answer", status: 503, body: "" };
const failsAt = (path: string, fault: Fault = unavailable) => {
  api.fault = (asked) => (asked.includes(path) ? fault : undefined);
};

describe("a recovery bundle works", () => {
  it.for(["/heartbeat", "/tasks/wait"])("ID-07 only when %s was answered, too", async (path) => {
    failsAt(path);
    await expect(attempt()).rejects.toThrow(LinkFailure);
    expect(staged()).toMatchObject({ issued: { chain: expect.any(String) } });
    expect(staged().committed).toBeUndefined();
    api.fault = () => undefined;
    expect((await attempt()).committed).toEqual({ apiUrl: api.url });
    expect(staged().committed).toEqual({ apiUrl: api.url });
    expect(api.heartbeats.at(-1)?.applied_bundle).toEqual(staged().applied);
  });

  it("ID-07 with one key, however often the response to it is lost", async () => {
    failsAt("/v1/recover", { do: "lose_answer" });
    for (const _ of [1, 2]) await expect(attempt()).rejects.toThrow(LinkFailure);
    expect(staged().issued).toBeUndefined();
    api.fault = () => undefined;
    await attempt();
    expect(api.recovery.keysOf(staged().bundle.content.token)).toHaveLength(1);
    expect(api.recovery.requests).toHaveLength(3);
  });

  it("ID-07 without a second request once the identity was issued", async () => {
    failsAt("/tasks/wait");
    await expect(attempt()).rejects.toThrow(LinkFailure);
    api.fault = () => undefined;
    await attempt();
    expect(api.recovery.requests).toHaveLength(1);
  });

  it("ID-07 not after it has expired by the server's time, whatever this host's clock says", async () => {
    disguise({ expires_at: new Date(Date.now() - 1).toISOString() });
    const error = await attempt().catch((reason: unknown) => reason);
    expect((error as LinkFailure).failure).toMatchObject({ code: "bundle_expired" });
    expect(api.recovery.requests).toHaveLength(0);
  });
});

/** As if the stored bundle had these. */
function disguise(content: Partial<RecoveryBundle["content"]>): void {
  const present = staged();
  Object.assign(present.bundle.content, content);
  disk.write(stagedPath(files), JSON.stringify(present), 0o600);
}
