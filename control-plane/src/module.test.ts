import { integer, kinds, setting } from "@holdfast/kit/settings";
import { describe, expect, it } from "vitest";
import { defineModule, settingsOf } from "./module.ts";

const pace = setting(integer({ min: 1, max: 9 }), { env: "HOLDFAST_TEST_PACE", default: 1, help: "" });
const run = async () => undefined;

describe("a module", () => {
  it("has its jobs sorted by the process that runs them", () => {
    const { apiJobs, workerJobs } = defineModule({
      name: "things",
      jobs: [
        { name: "a", every: 1, runsIn: "each api", run },
        { name: "b", every: 1, runsIn: "one worker", run },
        { name: "c", every: 1, runsIn: "each worker", run },
      ],
    });
    expect(apiJobs.map(({ name }) => name)).toEqual(["a"]);
    expect(workerJobs.map(({ name }) => name)).toEqual(["b", "c"]);
  });

  it("may share a setting with another by the same declaration, and not by a different one", () => {
    const one = defineModule({ name: "one", apiSettings: { pace }, workerSettings: { pace } });
    const two = defineModule({ name: "two", workerSettings: { pace } });
    expect(settingsOf({ one, two }, "workerSettings")).toEqual({ pace });
    expect(settingsOf({ one, two }, "apiSettings")).toEqual({ pace });
    const other = setting(kinds.text, { env: "HOLDFAST_TEST_OTHER", default: "", help: "" });
    const three = defineModule({ name: "three", workerSettings: { pace: other } });
    expect(() => settingsOf({ one, three }, "workerSettings")).toThrow(
      "three declares the setting pace, which another module declares differently",
    );
  });
});
