// Agents with the decisions of real ones and the identity of one node.

import { createEnrollmentToken } from "@holdfast/contracts/endpoints/enrollment";
import { getNode } from "@holdfast/contracts/endpoints/nodes";
import { expect, it } from "vitest";
import { createOrg, startTestApi } from "../../testkit/api/api.ts";
import { characterOf, simName } from "../src/sim/character.ts";
import { createFleet } from "../src/sim/fleet.ts";
import { createSimJoiner } from "../src/sim/join.ts";

it.for(["stream", "poll"] as const)(
  "ID-10 a second agent is noticed at once; one that was restarted, or was away, is not: %s",
  async (link) => {
    const api = await startTestApi();
    const client = api.operator((await createOrg(api, "clones")).id);
    const joiner = createSimJoiner({ apiUrl: api.nodeUrl, atOnce: 1 });
    const { token } = await client(createEnrollmentToken, { body: { node_name: simName(1) } });
    const character = characterOf(1, { seed: 1, agentVersion: "0.1.0" });
    const joined = await joiner.join({ token, character });
    joiner.close();
    const params = { node_id: joined.identity.nodeId };
    const statusOf = async () => (await client(getNode, { params })).status;
    const fleet = createFleet({ link });
    try {
      const first = fleet.add(joined, character);
      await expect.poll(first.connected).toBe(true);
      first.goAway();
      first.comeBack();
      await expect.poll(first.connected).toBe(true);
      await first.stop();
      const second = fleet.add(joined, character);
      await expect.poll(second.connected).toBe(true);
      await expect.poll(statusOf).toBe("active");
      fleet.add(joined, character);
      await expect.poll(statusOf).toBe("quarantined");
    } finally {
      await fleet.stop();
    }
  },
);
