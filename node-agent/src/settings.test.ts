import { describe, expect, it } from "vitest";
import { readAgentSettings } from "./settings.ts";

const tokenIn = (env: Record<string, string>) => readAgentSettings(env).recoveryToken;

describe("the recovery token of the environment", () => {
  it.for(["HOLDFAST_RECOVERY_TOKEN", "HOLDFAST_ENROLLMENT_TOKEN", "GPUAAS_ENROLLMENT_TOKEN"])(
    "ID-04 OPS-03 is %s, if it is a recovery token",
    (name) => expect(tokenIn({ [name]: "hfr_x" })).toBe("hfr_x"),
  );

  it("ID-04 is never a token for joining", () => {
    expect(tokenIn({ GPUAAS_ENROLLMENT_TOKEN: "hfe_x" })).toBeUndefined();
    expect(tokenIn({ GPUAAS_ENROLLMENT_TOKEN: "hfr_x", HOLDFAST_RECOVERY_TOKEN: "hfr_y" })).toBe("hfr_y");
    expect(() => tokenIn({ HOLDFAST_RECOVERY_TOKEN: "hfe_geheim" })).toThrow(/begins with hfr_/);
    expect(() => tokenIn({ HOLDFAST_RECOVERY_TOKEN: "hfe_geheim" })).not.toThrow(/geheim/);
  });
});
