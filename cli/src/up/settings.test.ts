import { describe, expect, it } from "vitest";
import { environmentFor, readAllSettings, warningsAboutNames } from "./settings.ts";

describe("what a process is given", () => {
  const person = {
    PATH: "/bin",
    DATABASE_URL: "postgres://a:b@c/d",
    SECRETS_KEK_BASE64: "k",
    HOLDFAST_TOKEN: "t",
  };
  const given = {
    HOLDFAST_DATABASE_URL: undefined,
    HOLDFAST_APP_DATABASE_URL: "postgres://x:y@z/w",
    HOLDFAST_SYSTEM_DATABASE_URL: "postgres://s:y@z/w",
    HOLDFAST_KEK_BASE64: "K",
    HOLDFAST_API_PORT: "4000",
  };

  it("SEC-03 holds no secret that is another process's business", () => {
    expect(environmentFor("gateway", person, given)).toEqual({ PATH: "/bin" });
    expect(environmentFor("worker", person, given)).toEqual({
      PATH: "/bin",
      HOLDFAST_SYSTEM_DATABASE_URL: given.HOLDFAST_SYSTEM_DATABASE_URL,
    });
  });

  it("OPS-03 holds the value once, under the canonical name", () => {
    const { HOLDFAST_DATABASE_URL: _, ...expected } = given;
    expect(environmentFor("api", person, given)).toEqual({ PATH: "/bin", ...expected });
  });
});

describe("settings of everything", () => {
  it("OPS-03 are read before anything starts", () => {
    expect(readAllSettings({}).api.port).toBe(3001);
    expect(() => readAllSettings({ HOLDFAST_SWEEP_INTERVAL_SECONDS: "never" })).toThrow(
      /HOLDFAST_SWEEP_INTERVAL_SECONDS/,
    );
    expect(() => readAllSettings({ HOLDFAST_API_BIND: "0.0.0.0" })).toThrow(/clear text/);
  });

  it("OPS-03 include those of the commands, so that only real mistakes are warned of", () => {
    expect(warningsAboutNames({ HOLDFAST_TOKEN: "t", HOLDFAST_DATA_DIR: "/x", HOME: "/" })).toEqual([]);
    expect(warningsAboutNames({ HOLDFAST_GATEWAY_PROT: "1" })).toEqual([
      "HOLDFAST_GATEWAY_PROT is not a setting of Holdfast; did you mean HOLDFAST_GATEWAY_PORT?",
    ]);
  });
});
