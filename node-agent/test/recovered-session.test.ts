// An identity that was recovered and is not in the ordinary files yet: in force, unless this machine has joined since then.

import { existsSync, mkdirSync, readFileSync, rmdirSync, rmSync, writeFileSync } from "node:fs";
import { certificateRequest, newPrivateKey, privateKeyPem } from "@holdfast/kit/certificate-request";
import { describe, expect, it } from "vitest";
import { joinedDirectory } from "../../testkit/agent/agent.ts";
import { makeAuthority } from "../../testkit/agent/fake-authority.ts";
import { hasIdentity } from "../src/identity/has-identity.ts";
import { parseIdentity, readIdentity } from "../src/identity/identity-file.ts";
import { stateFiles } from "../src/identity/state-directory.ts";
import { openSession } from "../src/link/session.ts";
import { type Recovered, storable } from "../src/recovery/state.ts";
import { openRecoveryFile } from "../src/recovery/state-file.ts";
import { type FakeApi, newSigningKey, startFakeApi } from "./support/fake-api.ts";

const MINUTE = 60_000;
const keySet = { version: 7, keys: [newSigningKey().jwk] };

async function recoveredAt(api: FakeApi, notBefore: number, nodeId = api.nodeId): Promise<Recovered> {
  const key = newPrivateKey();
  const chain = await api.authority.certify(certificateRequest(key, "n"), nodeId, {
    notBefore: new Date(notBefore),
  });
  const bundle = { version: 4, roots: [api.authority.rootPem] };
  const profile = { ...api.profile, version: 9 };
  return { identity: parseIdentity(privateKeyPem(key) + chain, "test"), trust: { keySet, bundle, profile } };
}

async function joined() {
  const api = await startFakeApi();
  const stateDir = await joinedDirectory(api);
  const files = stateFiles(stateDir);
  const open = (recovered?: Recovered) =>
    openSession({ files, apiUrl: undefined, instanceId: crypto.randomUUID(), bootId: "b", recovered });
  return { api, stateDir, files, open };
}

describe("a recovered identity", () => {
  it("ID-06 is in force with its trust at once, and in the files when they can be written", async () => {
    const { api, files, open } = await joined();
    const session = open();
    session.present();
    const recovered = await recoveredAt(api, Date.now() - MINUTE);
    // Whoever replaces agent.json writes this file first.
    const inTheWay = `${files.agent}.${process.pid}.tmp`;
    mkdirSync(inTheWay);
    session.recover(recovered);
    expect(session.present()).toMatchObject({
      identity: recovered.identity,
      profile: { version: 9 },
      apiUrl: api.url,
    });
    expect(session.agent()).toMatchObject({ trust: { key_set: 7, bundle: 4 }, profile: { version: 9 } });
    expect([...session.verifiers().keys()]).toEqual(keySet.keys.map(({ kid }) => kid));
    expect(session.storeRecovered()).toBe(false);
    expect(session.unsaved()).toBe(recovered);
    expect(readIdentity(files)).not.toEqual(recovered.identity);
    rmdirSync(inTheWay);
    writeFileSync(files.next, "{}");
    expect(session.storeRecovered()).toBe(true);
    expect(session.unsaved()).toBeUndefined();
    expect(readIdentity(files)).toEqual(recovered.identity);
    expect(existsSync(files.next)).toBe(false);
    expect(open().agent()).toMatchObject({ trust: { key_set: 7, bundle: 4 }, profile: { version: 9 } });
    session.close();
  });

  it("ID-06 is taken from recovery.bin at the start, also where identity.pem is missing", async () => {
    const { api, stateDir, files, open } = await joined();
    const recovered = await recoveredAt(api, Date.now() - MINUTE);
    rmSync(files.identity);
    expect(hasIdentity(stateDir)).toBe(false);
    const store = openRecoveryFile(files, api.nodeId);
    store.write({ ...store.read(), recovered: storable(recovered) });
    store.close();
    expect(hasIdentity(stateDir)).toBe(true);
    expect(open(recovered).present().identity).toEqual(recovered.identity);
  });

  it("ID-06 is not used when this machine has joined since then, as this node or as another", async () => {
    const { api, files, open } = await joined();
    const older = await recoveredAt(api, Date.now() - 60 * MINUTE);
    const session = open(older);
    expect(session.present().identity).toEqual(readIdentity(files));
    expect(session.storeRecovered()).toBe(true);
    expect(readIdentity(files)).not.toEqual(older.identity);
    const elsewhere = await recoveredAt(api, Date.now(), crypto.randomUUID());
    expect(open(elsewhere).unsaved()).toBeUndefined();
    rmSync(files.identity);
    expect(open(elsewhere).unsaved()).toBeUndefined();
  });

  it("ID-06 is not requested for a machine that joined as another node beside the running agent", async () => {
    const { api, files, open } = await joined();
    const session = open();
    expect(session.recoveryPath()).toMatchObject({ urls: [api.url], roots: [api.authority.rootPem] });
    const agent = JSON.parse(readFileSync(files.agent, "utf8")) as object;
    writeFileSync(files.agent, JSON.stringify({ ...agent, node_id: crypto.randomUUID() }));
    expect(() => session.recoveryPath()).toThrow(/Restart the agent/);
  });

  it("ID-06 may be verified by roots that were adopted since the join", async () => {
    const { api, open } = await joined();
    const { rootPem } = await makeAuthority();
    const session = open();
    session.adopt({ roots: [api.authority.rootPem, rootPem] });
    expect(session.recoveryPath().roots).toEqual([api.authority.rootPem, rootPem]);
  });
});
