import { describe, expect, it } from "vitest";
import { failingFirst, resultWords, titleOf } from "./job-words.ts";

describe("background jobs in words", () => {
  it("are named by what they do", () => {
    expect(titleOf({ name: "remove-old-tasks" })).toBe("Remove old tasks");
    expect(titleOf({ name: "report-api-presence" })).toBe("Report API presence");
  });

  it("say what the last turn did", () => {
    expect(resultWords(null)).toBe("–");
    expect(resultWords({})).toBe("Done");
    expect(resultWords({ sessions: 0 })).toBe("Nothing to do");
    expect(resultWords({ sessions: 2, one_time_links: 1, keys: 0 })).toBe("2 sessions, 1 one time links");
  });

  it("come with those that fail first, and otherwise in their order", () => {
    const job = (name: string, state: string) => ({ name, state }) as Parameters<typeof failingFirst>[0][number];
    const jobs = [job("a", "ok"), job("b", "failing"), job("c", "waiting"), job("d", "failing")];
    expect(failingFirst(jobs).map(({ name }) => name)).toEqual(["b", "d", "a", "c"]);
  });
});
