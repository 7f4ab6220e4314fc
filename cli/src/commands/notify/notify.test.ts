import type { Delivery } from "@holdfast/contracts/endpoints/notify";
import { describe, expect, it } from "vitest";
import { describeHistory } from "./history.ts";
import { describeTests } from "./test.ts";

const delivery: Delivery = {
  ...{ id: "01a1eae5-1454-70cf-9710-d71a9bff6993", receiver_id: null, kind: "webhook", event: "incident.opened" },
  ...{
    address: "https://hooks.example.com/…",
    title: "Cloned identity on rock-1",
    severity: "P0",
    incident_id: null,
  },
  ...{
    state: "pending",
    attempts: 2,
    answer: "503 later",
    created_at: new Date().toISOString(),
    delivered_at: null,
  },
  ...{ attempted_at: null, next_attempt_at: null },
};

describe("messages on the command line", () => {
  it("DRIFT-16 show what was sent to whom, how often, and what came back", () => {
    const text = describeHistory({ items: [delivery], next_cursor: "next" });
    for (const part of [
      "P0 Cloned identity on rock-1",
      "https://hooks.example.com/…",
      "2",
      "503 later",
      "--cursor next",
    ])
      expect(text).toContain(part);
    expect(describeHistory({ items: [], next_cursor: null })).toBe("No messages.");
  });

  it("DRIFT-16 do not claim that a test was sent which was not", () => {
    expect(describeTests({ items: [delivery] })).toContain("not sent yet");
    expect(describeTests({ items: [{ ...delivery, state: "delivered", answer: "200 ok" }] })).toMatch(
      /delivered +200 ok/,
    );
  });
});
