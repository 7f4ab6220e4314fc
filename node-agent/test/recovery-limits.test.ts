// When a whole agent does not recover: without a token, or while the last new certificate was rejected.

import { describe, expect, it } from "vitest";
import { joinedDirectory } from "../../testkit/agent/agent.ts";
import { atEnd } from "../../testkit/lifetime/at-end.ts";
import { explain, lookAt } from "../src/diagnostics/explain.ts";
import { characterOf } from "../src/sim/character.ts";
import { createFleet } from "../src/sim/fleet.ts";
import { createSimJoiner } from "../src/sim/join.ts";
import { startFakeApi } from "./support/fake-api.ts";
import { metric, recorded, recovers, shortLived, startQuick, stateOf, withToken } from "./support/recovering.ts";

const options = { now: Date.now(), diskPressurePercent: 100 };

describe("an agent that has lost its identity", () => {
  it("AGENT-03 whose new certificate is rejected too waits, counts and reports it, also after a restart", async () => {
    const api = await startFakeApi();
    const { stateDir } = await withToken(api);
    const rejected = '{"code":"certificate_untrusted","message":"not ours","next_step":"x"}';
    api.fault = (path) => (path === "/heartbeat" ? { do: "answer", status: 401, body: rejected } : undefined);
    const first = await startQuick(stateDir);
    await expect.poll(() => metric(first, "recovery_suppressed_total")).toBeGreaterThan(0);
    expect(await metric(first, "recovery_attempts_total")).toBe(1);
    expect(recorded(first)).toContain("recovery_enrollment_blocked");
    await first.stop();
    expect(explain(lookAt(stateDir, options), Date.now()).join("\n")).toContain(
      "no other one is requested before",
    );
    const second = await startQuick(stateDir);
    await expect.poll(() => metric(second, "recovery_suppressed_total")).toBeGreaterThan(0);
    expect(api.recovery.requests).toHaveLength(1);
    api.fault = () => undefined;
    await expect.poll(() => stateOf(stateDir).rejected).toBeNull();
  });

  it("AGENT-01 without a token says so, and asks nobody", async () => {
    const api = await shortLived();
    api.recovery.offers = false;
    const agent = await startQuick(await joinedDirectory(api));
    await expect.poll(() => recorded(agent)).toContain("this node has no recovery token");
    await expect.poll(() => api.requests.filter((path) => path === "/heartbeat").length).toBeGreaterThan(2);
    expect(api.requests).not.toContain("/v1/server-time");
    expect(explain(lookAt(agent.stateDir, options), Date.now()).join("\n")).toContain("no recovery token yet");
  });

  it("ID-04 uses a token from the operator while it has none from the server", async () => {
    const api = await shortLived();
    const given = api.recovery.issue();
    const agent = await startQuick(await joinedDirectory(api), { HOLDFAST_RECOVERY_TOKEN: given.token });
    await recovers(agent);
    expect(api.recovery.requests).toMatchObject([{ token: given.token }]);
    await expect.poll(() => api.heartbeats.at(-1)?.recovery?.seq).toBeGreaterThan(given.seq);
  });

  it("ID-05 as a simulated agent recovers in the same way", async () => {
    const api = await startFakeApi();
    api.recovery.offers = true;
    const joiner = createSimJoiner({ apiUrl: api.url, atOnce: 1 });
    atEnd(() => joiner.close());
    const character = characterOf(1, { seed: 1, agentVersion: "0.1.0" });
    const fleet = createFleet({ link: "poll" });
    atEnd(() => fleet.stop());
    fleet.add(await joiner.join({ token: api.token(), character }), character);
    await expect.poll(() => fleet.status().connected).toBe(1);
    api.expireShown();
    await expect.poll(() => api.recovery.requests).toMatchObject([{ cause: "cert_expired" }]);
    await expect.poll(() => api.heartbeats.at(-1)?.counters.recovery_successes).toBe(1);
    await expect.poll(() => fleet.status()).toMatchObject({ connected: 1, problems: {} });
  });
});
