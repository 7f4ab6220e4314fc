import { ApiError } from "@holdfast/contracts/errors";
import { createLog } from "@holdfast/service/log";
import { describe, expect, it } from "vitest";
import { type CaTrust, THIS_API } from "./ingress-trust/decide.ts";
import { createIssuanceGate } from "./issuance-gate.ts";

const at = [
  { url: "https://nodes.test", address: "10.0.0.5", why: "it said no" },
  { url: "https://nodes.test", address: "10.0.0.6", why: "it said no" },
];
const mismatch: CaTrust = { state: "mismatch", at };
const unknown: CaTrust = { state: "unknown", at };
const agrees: CaTrust = { state: "agrees" };

function open(stored: CaTrust) {
  const levels: string[] = [];
  const destination = { write: (line: string) => void levels.push(JSON.parse(line).level) };
  const gate = createIssuanceGate(stored, createLog({ process: "test", level: "info", destination }));
  const refusal = () => {
    try {
      gate.check();
      return undefined;
    } catch (error) {
      return error as ApiError;
    }
  };
  return { gate, refusal, levels };
}

describe("the gate of certificates", () => {
  it("ID-11 is closed by a mismatch alone, whoever has seen it, and names the address", () => {
    const { gate, refusal } = open(mismatch);
    expect(refusal()).toBeInstanceOf(ApiError);
    expect(refusal()).toMatchObject({ code: "ca_ingress_mismatch", details: { at: ["https://nodes.test"] } });
    gate.set(agrees);
    expect(refusal()).toBeUndefined();
    gate.set(unknown);
    expect(refusal()).toBeUndefined();
    gate.set(mismatch);
    expect(refusal()?.code).toBe("ca_ingress_mismatch");
  });

  it("ID-17 names another CA than before as what it is", () => {
    const why = "The CA is not the one that nodes were enrolled with.";
    const { refusal } = open({ state: "mismatch", at: [{ url: THIS_API, address: "", why }] });
    expect(refusal()).toMatchObject({
      code: "ca_ingress_mismatch",
      message: `${why} No certificates are issued.`,
    });
    expect(refusal()?.nextStep).toContain("the database and the KEK that it had before");
  });

  it("ID-11 is reported when it changes, also that nothing is known", () => {
    const { gate, levels } = open(unknown);
    for (const trust of [unknown, unknown, agrees, agrees, mismatch, mismatch, agrees]) gate.set(trust);
    expect(levels).toEqual(["warn", "info", "error", "info"]);
  });
});
