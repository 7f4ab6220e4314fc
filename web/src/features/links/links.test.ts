import { describe, expect, it } from "vitest";
import { formOfLink, type LinkFacts } from "./link-form.ts";
import { linkSecretOf } from "./secret.ts";

const link = (facts: Partial<LinkFacts>): LinkFacts => ({
  purpose: "invitation",
  email: "you@example.org",
  organization: "Tidewater",
  role: "member",
  expires_at: "2026-01-01T00:00:00.000Z",
  ...facts,
});

describe("the form of a one-time link", () => {
  it("OPS-01 asks the first administrator for email and name", () => {
    const form = formOfLink(link({ purpose: "first_admin", email: null, organization: null, role: null }), "new");
    expect(form).toMatchObject({ asksEmail: true, asksName: true });
  });

  it("SEC-03 asks a person who lost the password for nothing but a new one", () => {
    const form = formOfLink(link({ purpose: "sign_in", organization: null, role: null }), "new");
    expect(form).toMatchObject({ asksEmail: false, asksName: false });
  });

  it("SEC-01 names the organization of an invitation, and asks only new people for their name", () => {
    const form = formOfLink(link({}), "new");
    expect(form).toMatchObject({ title: "Join Tidewater", asksName: true, asksEmail: false, asksStanding: true });
    expect(formOfLink(link({}), "existing")).toMatchObject({ asksName: false });
  });

  it("SEC-03 asks people with an account for the password they have, never for a new one", () => {
    expect(formOfLink(link({}), "existing").password).toBe("current");
    expect(formOfLink(link({}), "new").password).toBe("new");
  });
});

describe("the secret in the fragment", () => {
  it("SEC-03 takes only what is a link's secret", () => {
    expect(linkSecretOf("#hfl_abc")).toBe("hfl_abc");
    expect(linkSecretOf("#hft_abc")).toBeNull();
    expect(linkSecretOf("#")).toBeNull();
    expect(linkSecretOf("")).toBeNull();
  });
});
