import { describe, expect, it } from "vitest";
import { returnPath } from "./return-path.ts";

describe("where sign-in leads", () => {
  it("SEC-03 returns to the page the person wanted, with its filters", () => {
    expect(returnPath("/audit?result=denied&range=24h")).toBe("/audit?result=denied&range=24h");
    expect(returnPath("/organization/tokens")).toBe("/organization/tokens");
  });

  it.each([
    "//evil.example",
    "/\\evil.example",
    "https://evil.example/",
    "javascript:alert(1)",
    "",
    "audit",
    undefined,
    7,
  ])("SEC-03 never leads to another site: %s", (wanted) => {
    expect(returnPath(wanted)).toBe("/");
  });

  it("SEC-03 is not fooled by control characters that URL parsers drop", () => {
    expect(returnPath("/\t/evil.example")).toBe("/");
    expect(returnPath("\t//evil.example")).toBe("/");
  });

  it("does not lead back to sign-in or to a used link", () => {
    expect(returnPath("/sign-in?to=/audit")).toBe("/");
    expect(returnPath("/link")).toBe("/");
  });
});
