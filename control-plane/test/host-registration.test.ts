// VM hosts register by enrolling with their bootstrap token: 401 for the token, 404 for the host, 422 for a value; a new token makes the
// others worthless.

import {
  createEnrollmentToken,
  enrollNode,
  revokeEnrollmentToken,
} from "@holdfast/contracts/endpoints/enrollment";
import { getNode } from "@holdfast/contracts/endpoints/nodes";
import { VM_HOST } from "@holdfast/contracts/node/vm-host-capability";
import { beforeAll, describe, expect, it } from "vitest";
import { createOrg, startTestApi, type TestApi } from "../../testkit/api/api.ts";
import { hostFacts, makeKeyRequest } from "../../testkit/api/nodes.ts";

const facts = { ...hostFacts, capabilities: [...hostFacts.capabilities, VM_HOST] };

function registering(api: TestApi, orgId: string) {
  const tokenFor = async (name: string) =>
    api.operator(orgId)(createEnrollmentToken, { body: { kind: "bootstrap", node_name: name } });
  const register = async (token: string, name: string, changes: Partial<typeof facts> = {}, csr?: string) =>
    api.operator()(enrollNode, {
      body: { token, csr: csr ?? (await makeKeyRequest()).csr, node_name: name, facts: { ...facts, ...changes } },
    });
  const refusal = (work: Promise<unknown>) =>
    work.then(
      () => undefined,
      ({ status, envelope }) => ({ status, ...envelope }),
    );
  return { tokenFor, register, refusal };
}

describe("a VM host", () => {
  let api: TestApi;
  let host: ReturnType<typeof registering>;
  let orgId: string;
  beforeAll(async () => {
    api = await startTestApi();
    orgId = (await createOrg(api, "hosts")).id;
    host = registering(api, orgId);
  });

  it("VM-01 registers with its id and its token", async () => {
    const { token } = await host.tokenFor("vm-1");
    expect(await host.register(token, "vm-1")).toMatchObject({ node_name: "vm-1" });
  });

  it("VM-01 VM-09 gets 401 for a token that is not known, with the settings to compare", async () => {
    const { token } = await host.tokenFor("vm-2");
    const wrong = `hfb_${"x".repeat(43)}.${token.split(".")[1]}`;
    expect(await host.refusal(host.register(wrong, "vm-2"))).toMatchObject({
      ...{ status: 401, code: "enrollment_token_unknown" },
      next_step: expect.stringMatching(/NODE_AGENT_HOST_ID and NODE_AGENT_BOOTSTRAP_TOKEN/),
    });
  });

  it("VM-01 VM-09 gets 404 for an id without a record, and 403 for the id of another host", async () => {
    const { token } = await host.tokenFor("vm-3");
    expect(await host.refusal(host.register(token, "no-such-host"))).toMatchObject({
      ...{ status: 404, code: "host_unknown", message: "There is no host record with the id no-such-host." },
      next_step: expect.stringContaining("ALLOW_UNKNOWN_HOST_REGISTRATION=true"),
    });
    await host.register(token, "vm-3");
    const other = (await host.tokenFor("vm-4")).token;
    expect(await host.refusal(host.register(other, "vm-3"))).toMatchObject({
      ...{ status: 403, code: "enrollment_token_wrong_node" },
    });
  });

  it("VM-01 VM-09 gets 422 that names ram_total_mb, and no other machine does", async () => {
    const { token } = await host.tokenFor("vm-5");
    const small = { memory_bytes: 255 * 1024 ** 2 };
    expect(await host.refusal(host.register(token, "vm-5", small))).toMatchObject({
      ...{ status: 422, code: "host_values_invalid" },
      message: "The host cannot be registered: ram_total_mb is 255, and must be at least 256.",
      details: { fields: [{ field: "ram_total_mb" }] },
    });
    const node = { ...small, capabilities: hostFacts.capabilities };
    expect(await host.register(token, "vm-5", node)).toMatchObject({ node_name: "vm-5" });
    expect(await host.register(token, "vm-5", { memory_bytes: 256 * 1024 ** 2 })).toBeDefined();
  });

  it("VM-01 is refused with a token that was replaced, and registers with the new one", async () => {
    const old = await host.tokenFor("vm-6");
    await host.register(old.token, "vm-6");
    const rotated = await host.tokenFor("vm-6");
    await api.operator(orgId)(revokeEnrollmentToken, { params: { token_id: old.id } });
    expect(await host.refusal(host.register(old.token, "vm-6"))).toMatchObject({
      code: "enrollment_token_revoked",
    });
    expect(await host.register(rotated.token, "vm-6")).toMatchObject({ node_name: "vm-6" });
  });
});

describe("in development, an unknown VM host", () => {
  it("VM-01 registers under its own id with another host's token, once, with a warning", async () => {
    const api = await startTestApi({ env: { ALLOW_UNKNOWN_HOST_REGISTRATION: "true" } });
    const orgId = (await createOrg(api, "dev")).id;
    const host = registering(api, orgId);
    const { token } = await host.tokenFor("known");
    const { csr } = await makeKeyRequest();
    const made = await host.register(token, "unknown-1", {}, csr);
    expect(made).toMatchObject({ node_name: "unknown-1" });
    expect((await host.register(token, "unknown-1", {}, csr)).node_id, "a lost response").toBe(made.node_id);
    expect(await api.operator(orgId)(getNode, { params: { node_id: made.node_id } })).toMatchObject({
      name: "unknown-1",
    });
    expect(api.logged()).toContain("ALLOW_UNKNOWN_HOST_REGISTRATION is on");
    expect(await host.register(token, "known"), "the token is still that of its host").toMatchObject({
      node_name: "known",
    });
    const stranger = await host.refusal(host.register(token, "unknown-1"));
    expect(stranger, "a host that has a record needs its own token").toMatchObject({ status: 403 });
    const wrong = `hfb_${"y".repeat(43)}.${token.split(".")[1]}`;
    expect(await host.refusal(host.register(wrong, "unknown-2"))).toMatchObject({ status: 401 });
  });
});
