import { ACKNOWLEDGE_BYTES } from "@holdfast/contracts/terminal/frames";
import fc from "fast-check";
import { expect, it } from "vitest";
import { createOutputCredit } from "./output-credit.ts";

it("TERM-10 acknowledges at the latest after what is allowed, and never more than was shown", () => {
  const sizes = fc.array(fc.integer({ min: 1, max: ACKNOWLEDGE_BYTES / 2 }), { maxLength: 200 });
  fc.assert(
    fc.property(sizes, (chunks) => {
      const credit = createOutputCredit();
      let total = 0;
      let acknowledged = 0;
      for (const chunk of chunks) {
        total += chunk;
        acknowledged = credit.processed(chunk) ?? acknowledged;
        expect(acknowledged).toBeLessThanOrEqual(total);
        expect(total - acknowledged).toBeLessThan(ACKNOWLEDGE_BYTES);
      }
    }),
  );
});
