import { describe, expect, it } from "vitest";
import type { PublishedProfile } from "../../profiles/published.ts";
import { compareWithProfile } from "./compare-profile.ts";

const observedAt = new Date("2026-03-01T03:00:00Z");
const api = "https://nodes.example.com:18442";
const terminal = "https://terminals.example.com";
const other = "https://elsewhere.example.com";
const profile = (version: number, endpoints: Record<string, string>): PublishedProfile => ({
  ...{ version, endpoints, publishedAt: observedAt },
});
const compare = (urls: { node_api: string; node_terminal: string | null }, ...accepted: PublishedProfile[]) =>
  compareWithProfile({ nodeId: "n", urls, at: observedAt }, accepted).map(
    ({ key, value, detail }) => `${key} ${value} ${detail?.["profile_version"]}`,
  );
const both = { node_api: api, node_terminal: terminal };

describe("addresses in use, against the profile", () => {
  const noTerminal = { ...both, node_terminal: null };
  const cases: Record<
    string,
    { urls?: typeof both | typeof noTerminal; accepted: PublishedProfile[]; found: string[] }
  > = {
    "the same": { accepted: [profile(2, both)], found: ["api matches 2", "terminal matches 2"] },
    "another api": {
      urls: { ...both, node_api: other },
      ...{ accepted: [profile(2, both)], found: ["api differs 2", "terminal matches 2"] },
    },
    "another gateway": {
      urls: { ...both, node_terminal: other },
      ...{ accepted: [profile(2, both)], found: ["api matches 2", "terminal differs 2"] },
    },
    "no gateway yet": {
      urls: noTerminal,
      ...{ accepted: [profile(2, both)], found: ["api matches 2", "terminal differs 2"] },
    },
    "no gateway, as published a moment ago": {
      urls: noTerminal,
      accepted: [profile(2, both), profile(1, { node_api: api })],
      found: ["api matches 2", "terminal matches 1"],
    },
    "a gateway that nobody published": { accepted: [profile(2, { node_api: api })], found: ["api matches 2"] },
    "those of a moment ago": {
      accepted: [profile(2, { node_api: other, node_terminal: other }), profile(1, both)],
      found: ["api matches 1", "terminal matches 1"],
    },
    "the default port": {
      urls: { ...both, node_api: "https://a" },
      ...{ accepted: [profile(1, { node_api: "https://a:443/" })], found: ["api matches 1"] },
    },
    "another port": {
      urls: { ...both, node_api: "https://a:8443" },
      ...{ accepted: [profile(1, { node_api: "https://a" })], found: ["api differs 1"] },
    },
    "nothing published": { accepted: [], found: [] },
  };
  it.for(Object.entries(cases))("DRIFT-01 %s", ([, { urls = both, accepted, found }]) => {
    expect(compare(urls, ...accepted)).toEqual(found);
  });

  it("DRIFT-01 the evidence names both addresses, and nothing secret of either", () => {
    const secret = { node_api: "https://user:canary@a.example/path?token=canary", node_terminal: terminal };
    const [found] = compareWithProfile(
      { nodeId: "n", urls: { ...both, node_api: "https://x:canary@b.example/?canary" }, at: observedAt },
      [profile(7, secret)],
    );
    expect(found).toMatchObject({
      ...{ nodeId: "n", kind: "profile", key: "api", value: "differs", observer: "control_plane", observedAt },
      detail: { expected: "https://a.example", reported: "https://b.example", profile_version: 7 },
    });
    expect(JSON.stringify(found)).not.toContain("canary");
  });
});
