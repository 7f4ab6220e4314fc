import type { Fleet, FleetForecast } from "@holdfast/contracts/endpoints/fleet";
import { describe, expect, it } from "vitest";
import { describeFleet } from "./fleet.ts";
import { describeForecast, timeOf } from "./forecast.ts";

const NOW = Date.parse("2026-03-01T03:00:00.000Z");
const HOUR = 3_600_000;
const fleet: Fleet = {
  ...{ at: "2026-03-01T03:00:00.000Z", total: 12, matching: 12, not_fine: 0, pending: 0 },
  states: { silent: 0, troubled: 0, fenced: 0, draining: 0, joining: 0, fine: 12 },
  ...{ troubles: [], versions: [], capabilities: [], own_side: null, brake: null },
};

describe("holdfast fleet", () => {
  it("counts nodes by state", () => {
    expect(describeFleet(fleet)).toBe("12 nodes: 12 healthy.");
    expect(describeFleet({ ...fleet, total: 0 })).toBe("No nodes.");
    const some = { ...fleet, not_fine: 1, states: { ...fleet.states, silent: 1, fine: 11 } };
    expect(describeFleet(some)).toBe("12 nodes: 1 offline, 11 healthy. 1 needs attention.");
    expect(describeFleet({ ...some, not_fine: 11 })).toContain("11 need attention");
  });

  it("DRIFT-13 says in one line that the control plane is suspected", () => {
    const message = "The control plane is suspected, because …";
    expect(describeFleet({ ...fleet, brake: { why: "fleet_lost", message } })).toBe(
      `12 nodes: 12 healthy.\nBrake on: ${message}`,
    );
  });
});

describe("holdfast fleet forecast", () => {
  const points = Array.from({ length: 49 }, (_, hour) => ({
    ...{ at: new Date(NOW + hour * HOUR).toISOString(), lost: hour >= 12 ? 9 : 0, recovering: hour >= 12 ? 7 : 0 },
  }));
  const forecast: FleetForecast = {
    ...{ at: "2026-03-01T03:00:00.000Z", nodes: 12, message: "If the control plane stays down …", points },
    until: { at: "2026-03-02T03:00:00.000Z", lost: 9, recovering: 7 },
  };

  it("is a sentence and a small table", () => {
    const [sentence, , head, ...rows] = describeForecast(forecast).split("\n");
    expect(sentence).toBe("If the control plane stays down …");
    expect(head).toMatch(/^DOWN FOR +UNTIL +LOST +RECOVER BY THEMSELVES +NEED AN OPERATOR$/);
    expect(rows).toHaveLength(8);
    expect(rows[2]).toMatch(/ 0 +0 +0$/);
    expect(rows[3]).toMatch(/ 9 +7 +2$/);
  });

  it("takes a duration or a time", () => {
    expect(timeOf("12h", undefined, NOW)).toBe("2026-03-01T15:00:00.000Z");
    expect(timeOf("90m", undefined, NOW)).toBe("2026-03-01T04:30:00.000Z");
    expect(timeOf("2026-03-01T18:00:00Z", undefined, NOW)).toBe("2026-03-01T18:00:00.000Z");
    for (const wrong of ["tomorrow", "2026-99-99", "-3h", ""]) expect(() => timeOf(wrong)).toThrow("Use ");
  });
});
