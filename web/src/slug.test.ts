import { Slug } from "@holdfast/contracts/fields";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { slugOf } from "./slug.ts";

describe("slugs proposed from names", () => {
  it("reads like the name", () => {
    expect(slugOf("Kelp & Söhne GmbH")).toBe("kelp-sohne-gmbh");
    expect(slugOf("  2nd Reef  ")).toBe("nd-reef");
  });

  it("is acceptable to the contract, or too short to be a proposal", () => {
    fc.assert(
      fc.property(fc.string({ maxLength: 80 }), (name) => {
        const slug = slugOf(name);
        expect(slug.length < 2 || Slug.safeParse(slug).success).toBe(true);
      }),
    );
  });
});
