import { randomBytes } from "node:crypto";
import { describe, expect, it } from "vitest";
import { parseEnrollmentToken } from "./enrollment-token.ts";

const secret = randomBytes(32).toString("base64url");
const digest = randomBytes(32);
const good = `hfe_${secret}.${digest.toString("base64url")}`;

describe("enrollment token", () => {
  it("ID-01 carries the root's digest; spaces around it are a slip of the hand", () => {
    expect(parseEnrollmentToken(` ${good}\n`)).toEqual({ text: good, rootSha256: digest.toString("hex") });
  });

  it("ID-01 may be of either kind, unless one is asked for", () => {
    const bootstrap = good.replace("hfe_", "hfb_");
    expect(parseEnrollmentToken(bootstrap)).toEqual({ text: bootstrap, rootSha256: digest.toString("hex") });
    expect(parseEnrollmentToken(bootstrap, ["bootstrap"]).text).toBe(bootstrap);
    const refused = () => parseEnrollmentToken(good, ["bootstrap"]);
    expect(refused).toThrow("another kind (hfe_…)");
    expect(refused).toThrow("holdfast node token create --bootstrap --node");
  });

  it.for([
    ["", "There is none"],
    [good.slice(0, 60), "Behind the dot stand 12 characters"],
    [good.slice(0, 40), "part behind the dot is missing"],
    [good.replace("hfe_", "hft_"), "another kind (hft_…)"],
    [good.replace("hfe_", "hfr_"), "another kind (hfr_…)"],
    [secret, "does not begin with hfe_"],
    [`${good}.x`, "more than one dot"],
    [good.replace(secret, secret.slice(1)), "Before the dot stand 42 characters"],
    [good.replace(".", ".\n"), "a line break inside"],
    [good.replace(secret, `${secret.slice(2)}$$`), "Before the dot"],
  ] as const)("ID-01 says what is wrong with a token without repeating it: %#", ([token, problem]) => {
    expect(() => parseEnrollmentToken(token)).toThrow(problem);
    expect(() => parseEnrollmentToken(token)).toThrow("holdfast node token create");
    expect(() => parseEnrollmentToken(token)).not.toThrow(secret.slice(4, 30));
  });
});
