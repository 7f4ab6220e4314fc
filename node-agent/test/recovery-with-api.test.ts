// Recovery against the real api and database: what the faulty twin only imitates.

import { rmSync, writeFileSync } from "node:fs";
import { createEnrollmentToken } from "@holdfast/contracts/endpoints/enrollment";
import { changeNode } from "@holdfast/contracts/endpoints/nodes";
import { revokeRecoveryTokens } from "@holdfast/contracts/endpoints/recovery";
import { beforeAll, describe, expect, it } from "vitest";
import { startTestAgent } from "../../testkit/agent/agent.ts";
import { someFacts } from "../../testkit/agent/facts.ts";
import { makeAuthority } from "../../testkit/agent/fake-authority.ts";
import { scratchDirectory } from "../../testkit/agent/scratch.ts";
import { createOrg, startTestApi, type TestApi } from "../../testkit/api/api.ts";
import { readIdentity } from "../src/identity/identity-file.ts";
import { join } from "../src/identity/join.ts";
import { stateFiles } from "../src/identity/state-directory.ts";
import { readRecoveryFile } from "../src/recovery/state-file.ts";
import { recorded, recovers, startQuick } from "./support/recovering.ts";

let api: TestApi;
let client: ReturnType<TestApi["operator"]>;

beforeAll(async () => {
  api = await startTestApi();
  client = api.operator((await createOrg(api, "recovering")).id);
});

/** A node that was connected for long enough to have a token, and is stopped. */
async function stoppedNode() {
  const stateDir = scratchDirectory();
  const { token } = await client(createEnrollmentToken, { body: {} });
  const { nodeId } = await join({ token, apiUrl: api.nodeUrl, stateDir, facts: someFacts });
  const files = stateFiles(stateDir);
  const agent = await startTestAgent({ stateDir });
  await expect.poll(() => readRecoveryFile(files, nodeId).token?.seq).toBe(1);
  await agent.stop();
  return { stateDir, nodeId, files, before: readIdentity(files).certificate.serial };
}

describe("a node that has lost its identity, and the api", () => {
  it("ID-05 ID-06 agree on another one when its key is gone, and when its trust file is another CA's", async () => {
    const { stateDir, nodeId, files, before } = await stoppedNode();
    rmSync(files.identity);
    const agent = await startQuick(stateDir);
    await recovers(agent);
    expect(readIdentity(files).certificate.serial).not.toBe(before);
    await expect.poll(() => recorded(agent)).toContain("connected to");
    const { seq = 0 } = readRecoveryFile(files, nodeId).token ?? {};
    expect(seq).toBeGreaterThan(1);
    await agent.stop();
    writeFileSync(files.trust, (await makeAuthority()).rootPem);
    const again = await startQuick(stateDir);
    await expect.poll(() => recorded(again)).toContain("(server_untrusted)");
    await expect.poll(() => readRecoveryFile(files, nodeId).token?.seq).toBeGreaterThan(seq);
  });

  it("ID-04 do not agree on one by a token that was revoked, or for a node that was", async () => {
    const { stateDir, nodeId, files } = await stoppedNode();
    rmSync(files.identity);
    const params = { node_id: nodeId };
    await client(revokeRecoveryTokens, { params });
    const agent = await startQuick(stateDir);
    await expect.poll(() => recorded(agent)).toContain("recovery_token_revoked");
    expect(recorded(agent)).toContain('"reason":"recovery_refused"');
    await agent.stop();
    await client(changeNode, { params, body: { change: "revoke" } });
    const revoked = await startQuick(stateDir);
    await expect.poll(() => recorded(revoked)).toContain('"reason":"identity_revoked"');
  });
});
