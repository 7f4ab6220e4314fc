import { describe, expect, it } from "vitest";
import { type Membership, pickOrganization } from "./session.ts";

const org = (id: string, role: Membership["role"]): Membership => ({ id, slug: id, name: id, role });

describe("the organization to act in", () => {
  const all = [org("newest", "operator"), org("own", "owner"), org("other", "member")];

  it("SEC-01 is the remembered one only while it is still theirs", () => {
    expect(pickOrganization(all, "other")?.id).toBe("other");
    expect(pickOrganization(all, "left-long-ago")?.id).toBe("own");
  });

  it("SEC-01 is one they belong to rather than one they only operate", () => {
    expect(pickOrganization(all, null)?.id).toBe("own");
    expect(pickOrganization([org("newest", "operator")], null)?.id).toBe("newest");
    expect(pickOrganization([], null)).toBeUndefined();
  });
});
