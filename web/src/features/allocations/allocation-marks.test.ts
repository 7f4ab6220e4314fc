import { allocationStatuses } from "@holdfast/contracts/endpoints/allocations";
import { userStates } from "@holdfast/contracts/reasons/vocabulary";
import { userStateTitles } from "@holdfast/contracts/words/state-titles";
import { describe, expect, it } from "vitest";
import { markOfAllocation } from "./allocation-marks.ts";

const marked = (status: (typeof allocationStatuses)[number], state: (typeof userStates)[number]) => {
  const { title, meaning: message } = userStateTitles[state];
  return markOfAllocation({ status, user_state: { state, title, message, since: "2026-01-01T00:00:00Z" } });
};

describe("the mark of an allocation", () => {
  it("DASH-07 is green only for one that is ready on a node that does not affect it", () => {
    const green = allocationStatuses.flatMap((status) =>
      userStates.filter((state) => marked(status, state).state === "ok").map((state) => `${status} ${state}`),
    );
    expect(green).toEqual(["active normal"]);
  });

  it("DASH-07 names the user state of one that is affected", () => {
    expect(marked("active", "temporary").word).toBe(userStateTitles.temporary.title);
    expect(marked("releasing", "temporary").word).toBe("Releasing");
  });
});
