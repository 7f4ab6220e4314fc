import { describe, expect, it } from "vitest";
import { type Admission, admit, type Situation } from "./admission.ts";

const good = { authentic: true, refused: undefined };
const expired = { authentic: true, refused: "it expired" };
const forged = { authentic: false, refused: "its signature is not valid" };
const known = ["unknown", "held", "started", "unsent", "settled"] as const;

/** Every cell: state of the request, and what the signature says. */
const table: Record<(typeof known)[number], Record<"good" | "expired" | "forged", Admission["do"]>> = {
  unknown: { good: "run", expired: "decline", forged: "decline" },
  held: { good: "confirm", expired: "confirm", forged: "ignore" },
  started: { good: "confirm", expired: "confirm", forged: "ignore" },
  unsent: { good: "resend_result", expired: "resend_result", forged: "ignore" },
  settled: { good: "ignore", expired: "ignore", forged: "ignore" },
};
const free = { draining: false, running: 0, maxInFlight: 1, hasRoom: true };
const situations = known.flatMap((state) =>
  Object.entries({ good, expired, forged }).map(([name, judgement]) => ({
    name: name as keyof (typeof table)["unknown"],
    situation: { ...free, known: state, judgement } satisfies Situation,
  })),
);

describe("an execute frame", () => {
  it.for(situations)("EXEC-02 of a request that is $situation.known, $name", ({ name, situation }) => {
    expect(admit(situation).do).toBe(table[situation.known][name]);
  });

  const hindrances = [
    [{ draining: true }, /about to stop/],
    [{ running: 1 }, /maxInFlight is 1/],
    [{ hasRoom: false }, /no room/],
  ] as const;

  it.for(hindrances)("EXEC-03 of a new request is declined when %j", ([more, reason]) => {
    const admission = admit({ ...free, ...more, known: "unknown", judgement: good });
    expect(admission).toEqual({ do: "decline", reason: expect.stringMatching(reason) });
  });

  it("EXEC-02 of a known request is never declined, whatever else is true: another agent could run it then", () => {
    for (const { situation } of situations.filter(({ situation }) => situation.known !== "unknown")) {
      for (const [more] of hindrances) expect(admit({ ...situation, ...more }).do).not.toBe("decline");
    }
  });
});
