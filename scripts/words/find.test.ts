import { describe, expect, it } from "vitest";
import { bannedNames, bannedPhrases } from "./banned.ts";
import { findNames, findPhrases } from "./find.ts";

const phrases = { "counts no more": "is no longer accepted" };
const linesOf = (text: string) => findPhrases("a.ts", text, phrases).map(({ line }) => line);

describe("a banned phrase", () => {
  it("is found as whole words in any case, and each time", () => {
    expect(linesOf("It Counts no more.\nx\ncounts no more")).toEqual([1, 3]);
    expect(linesOf("counts no moreover, recounts no more")).toEqual([]);
  });

  it("is found across lines of a comment, of prose and of a joined string", () => {
    expect(linesOf("// it counts\n// no more")).toEqual([1]);
    expect(linesOf("/**\n * it counts no\n * more */")).toEqual([2]);
    expect(linesOf("# it counts\n#   no more")).toEqual([1]);
    expect(linesOf("it counts\nno more")).toEqual([1]);
    expect(linesOf('"it counts " +\n  "no more"')).toEqual([1]);
  });

  it("is not found across two paragraphs", () => {
    expect(linesOf("what counts\n\n\nno more")).toEqual([]);
  });

  it("comes with what to write instead", () => {
    expect(findPhrases("a.md", "counts no more", phrases)).toEqual([
      { path: "a.md", line: 1, found: "counts no more", instead: "is no longer accepted" },
    ]);
  });
});

describe("a banned name", () => {
  const names = { told: "reported" };
  const namesIn = (text: string, path = "a.ts") => findNames(path, text, names).map(({ found }) => found);

  it("is found as a part of an identifier, in every spelling", () => {
    const text = "const told = 1; wasTold(TOLD_ONCE); type ToldTwice = { told_at: string }; x.#told;";
    expect(namesIn(text)).toEqual(["told", "wasTold", "TOLD_ONCE", "ToldTwice", "told_at", "#told"]);
  });

  it("is found in a file's name", () => {
    expect(namesIn("", "web/src/told-once.ts")).toEqual(["told-once.ts"]);
  });

  it("is not found in other words, in comments and in strings", () => {
    expect(namesIn('const toldo = "told"; // told')).toEqual([]);
    expect(namesIn("told", "a.md")).toEqual([]);
  });
});

describe("the lists", () => {
  it("hold lower-case words, each with another to use instead", () => {
    for (const [banned, instead] of Object.entries({ ...bannedPhrases, ...bannedNames })) {
      expect(banned).toMatch(/^[a-z][a-z ,'-]*[a-z]$/);
      expect(instead).not.toBe("");
      expect(findPhrases("a.md", instead, { [banned]: "" })).toEqual([]);
    }
    for (const name of Object.keys(bannedNames)) expect(name).toMatch(/^[a-z]+$/);
  });
});
