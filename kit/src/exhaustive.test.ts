import { expect, it } from "vitest";
import { exhaustive } from "./exhaustive.ts";

it("names a case that the types did not foresee", () => {
  expect(() => exhaustive("sideways" as never)).toThrow('unhandled case: "sideways"');
});
