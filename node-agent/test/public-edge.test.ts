// A whole agent behind something that terminates TLS and passes its requests on without its certificate, or with another one.

import { describe, expect, it } from "vitest";
import { readIdentity } from "../src/identity/identity-file.ts";
import { type FakeApi, type Fault, startFakeApi } from "./support/fake-api.ts";
import { metric, recorded, recovers, startQuick, withToken } from "./support/recovering.ts";

/** Recoveries and all else that needs no certificate get through. */
function refuse(api: FakeApi, code: string, received: string | null): void {
  const body = JSON.stringify({ code, message: "No.", details: { received_serial: received } });
  const fault: Fault = { do: "answer", status: 401, headers: { "content-type": "application/json" }, body };
  api.fault = (path) => (path.startsWith("/v1/") ? undefined : fault);
  api.streamFault = fault;
}

const streamsAndPolls = ["stream", "poll"] as const;

describe.each(streamsAndPolls)("an agent whose certificate does not reach the server, by %s", (link) => {
  it.for([
    ["certificate_missing", null],
    ["certificate_untrusted", "0badcafe"],
    ["identity_revoked", "0badcafe"],
  ] as const)(
    "DRIFT-14 ID-05 takes %s for a wrong endpoint, and requests no new identity",
    async ([code, received]) => {
      const api = await startFakeApi();
      const { stateDir } = await withToken(api);
      refuse(api, code, received);
      const agent = await startQuick(stateDir, { HOLDFAST_AGENT_LINK: link });
      await expect.poll(() => recorded(agent)).toMatch(/"reason":"edge_terminates_tls".*"count":[3-9]/);
      expect(recorded(agent)).not.toMatch(/auth_failed|identity_revoked","detail|recovered at/);
      expect(api.recovery.requests).toEqual([]);
      expect(await metric(agent, "identity_rejections_total")).toBe(0);
      api.fault = () => undefined;
      api.streamFault = undefined;
      await expect.poll(() => api.heartbeats.length).toBeGreaterThan(0);
    },
  );
});

describe("an agent whose own certificate is refused", () => {
  it("ID-05 DRIFT-14 takes it for what it is, and gets another one", async () => {
    const api = await startFakeApi();
    const { stateDir, files } = await withToken(api);
    refuse(api, "certificate_replaced", readIdentity(files).certificate.serial);
    const agent = await startQuick(stateDir);
    await recovers(agent);
    // Until then: the stand-in goes on to refuse the old certificate, and the agent has another one now.
    const [before = ""] = recorded(agent).split("recovered at");
    expect(before).toContain('"reason":"auth_failed"');
    expect(before).not.toContain("edge_terminates_tls");
  });
});
