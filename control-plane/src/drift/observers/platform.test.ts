import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type Authority, temporaryAuthority } from "../../identity/authority.ts";
import type { CaTrust } from "../../identity/ingress-trust/decide.ts";
import { type PlatformRow, platformOf } from "../evidence/platform.ts";
import { judgeControlPlane, SILENT_MS } from "./control-plane.ts";
import { judgeSigningCa } from "./signing-ca.ts";

const START = Date.parse("2026-03-01T03:00:00Z");
const at = (seconds: number) => new Date(START + seconds * 1000);
const said = (observations: ReturnType<typeof judgeControlPlane>) =>
  observations.map(({ value, observedAt, seenAt }) => [
    value,
    ...[observedAt, seenAt].map((time) => (time.getTime() - START) / 1000),
  ]);

describe("whether the control plane serves nodes", () => {
  const runs = { now: at(100), last_seen_at: at(98), serving_since: at(0) };
  const gone = (now: number) => ({ now: at(now), last_seen_at: at(98), serving_since: null });

  it("DRIFT-13 is judged by the api's own writes, and a restart is no outage", () => {
    expect(said(judgeControlPlane(undefined, runs))).toEqual([["ready", 0, 98]]);
    const ready = { value: "ready", seen_at: at(98) };
    expect(judgeControlPlane(ready, gone(118))).toEqual([]);
    expect(said(judgeControlPlane(ready, gone(119)))).toEqual([["not_ready", 98, 119]]);
    const left = { now: at(119), last_seen_at: null, serving_since: null };
    expect(said(judgeControlPlane(ready, left))).toEqual([["not_ready", 98, 119]]);
    const again = { now: at(116), last_seen_at: at(115), serving_since: at(114) };
    expect(said(judgeControlPlane(ready, again))).toEqual([["ready", 114, 115]]);
  });

  it("DRIFT-13 shows an outage afterwards, if nobody was there to see it", () => {
    const ready = { value: "ready", seen_at: at(98) };
    const later = { now: at(500), last_seen_at: at(499), serving_since: at(490) };
    expect(said(judgeControlPlane(ready, later))).toEqual([
      ["not_ready", 98, 490],
      ["ready", 490, 499],
    ]);
    expect(judgeControlPlane(undefined, { now: at(0), last_seen_at: null, serving_since: null })).toEqual([]);
  });

  it("DRIFT-13 is ready again after an outage that its process survived, not since its start", () => {
    // It was paused, or cut off from the database: the same process writes again.
    const gone = { value: "not_ready", seen_at: at(90) };
    expect(said(judgeControlPlane(gone, runs))).toEqual([["ready", 90, 98]]);
    expect(said(judgeControlPlane(gone, { ...runs, serving_since: at(95) }))).toEqual([["ready", 95, 98]]);
  });

  it("DRIFT-13 is never in question while an api runs, and always after it was silent for long enough", () => {
    const known = fc.option(fc.record({ value: fc.constantFrom("ready", "not_ready"), seen: fc.nat(1000) }), {
      nil: undefined,
    });
    fc.assert(
      fc.property(known, fc.nat(1000), fc.nat(1000), (before, silence, age) => {
        const last = known === undefined ? undefined : before && { value: before.value, seen_at: at(before.seen) };
        const now = 2_000 + silence;
        const isSilent = silence * 1000 > SILENT_MS;
        const serving = {
          ...{ now: at(now), last_seen_at: at(now - silence) },
          serving_since: isSilent ? null : at(Math.max(0, now - silence - age)),
        };
        const newest = judgeControlPlane(last, serving).at(-1);
        expect(newest?.value).toBe(isSilent ? "not_ready" : "ready");
        for (const one of judgeControlPlane(last, serving)) expect(one.seenAt >= one.observedAt).toBe(true);
      }),
    );
  });
});

describe("an outage of the control plane", () => {
  const row = (value: string, from: number, until: number): PlatformRow => ({
    ...{ kind: "control_plane", value, detail: null, observed_at: at(from), seen_at: at(until) },
  });
  const going = [row("not_ready", 100, 200), row("ready", 0, 100)];
  const over = [row("ready", 200, 300), row("not_ready", 100, 195), row("ready", 0, 100)].slice(0, 2);
  const kinds = (rows: PlatformRow[], heartbeat: Date | null) =>
    platformOf(rows, heartbeat).map(({ observedAt }) => (observedAt - START) / 1000);

  it("DRIFT-05 explains the silence of nodes that reported until then, and of no others", () => {
    expect(kinds(going, at(99))).toEqual([200]);
    expect(kinds(going, at(-20))).toEqual([200]);
    expect(kinds(going, at(-21))).toEqual([]);
    expect(kinds(going, null)).toEqual([]);
  });

  it("DRIFT-05 is over for a node with its first heartbeat afterwards", () => {
    expect(kinds(over, at(99))).toEqual([200]);
    expect(kinds(over, at(200))).toEqual([]);
    expect(kinds([row("ready", 0, 100)], at(50))).toEqual([]);
  });
});

describe("the signing CA", () => {
  const authority = temporaryAuthority(at(0));
  const agrees: CaTrust = { state: "agrees" };
  const judged = (by: Authority | undefined, known: string | undefined, ingresses: CaTrust = agrees) => {
    const { observations, trust } = judgeSigningCa(by, { known, ingresses, now: at(0) });
    return { said: observations.map(({ value, detail }) => [value, detail?.["root"]]), trust: trust.state };
  };
  const [root = ""] = authority.rootSha256;

  it("DRIFT-01 is in order when it is the one from before and accepts what it signs", () => {
    const inOrder = {
      said: [
        ["unchanged", root],
        ["match", undefined],
      ],
      trust: "agrees",
    };
    expect(judged(authority, undefined)).toEqual(inOrder);
    expect(judged(authority, root)).toEqual(inOrder);
  });

  it("DRIFT-07 ID-17 is not in order when it is lost, is another, or refuses what it signs, and the right one is remembered", () => {
    const wrong = {
      said: [
        ["changed", "the-right-one"],
        ["mismatch", undefined],
      ],
      trust: "mismatch",
    };
    expect(judged(undefined, "the-right-one")).toEqual(wrong);
    expect(judged(authority, "the-right-one")).toEqual(wrong);
    const distrusting = { ...authority, hasIssued: () => false };
    expect(judged(distrusting, undefined)).toMatchObject({
      said: [
        ["unchanged", root],
        ["mismatch", undefined],
      ],
    });
  });

  it("ID-11 is compared with what canaries met, and not known where none arrived", () => {
    const place = { url: "https://nodes.test", address: "10.0.0.5", why: "it answered HTTP 400" };
    const { observations, trust } = judgeSigningCa(authority, {
      ...{ known: root, now: at(0) },
      ingresses: { state: "mismatch", at: [place] },
    });
    expect(trust.state).toBe("mismatch");
    expect(observations[1]).toMatchObject({
      value: "mismatch",
      detail: { text: "https://nodes.test (10.0.0.5): it answered HTTP 400." },
    });
    expect(judged(authority, root, { state: "unknown", at: [place] })).toMatchObject({
      said: [
        ["unchanged", root],
        ["unknown", undefined],
      ],
      trust: "unknown",
    });
  });

  it("ID-11 that is not known is no evidence about a node", () => {
    const row = (value: string): PlatformRow => ({
      ...{ kind: "ca_trust", value, detail: null, observed_at: at(0), seen_at: at(0) },
    });
    expect(platformOf([row("unknown")], null)).toEqual([]);
    expect(platformOf([row("mismatch")], null)).toMatchObject([{ kind: "ca_trust", value: "mismatch" }]);
  });
});
