import { expect, it } from "vitest";
import { createEndedSessions } from "./ended-sessions.ts";

it("TERM-10 remembers the newest terminals that ended, and forgets the oldest beyond its room", () => {
  const ended = createEndedSessions(2);
  for (const id of ["a", "b", "b", "c"]) ended.add(id);
  expect(["a", "b", "c"].map(ended.has)).toEqual([false, true, true]);
});
