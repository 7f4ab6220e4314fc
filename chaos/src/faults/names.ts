// Faults of the name server.

import type { Lab } from "../lab/lab.ts";
import type { Fault } from "./fault.ts";

/** Affects new lookups only: existing connections continue. */
function answers(lab: Lab, what: string, address: string | undefined): Fault {
  return {
    what,
    inject: async () => lab.names.answer(address),
    repair: async () => lab.names.answer(lab.network.control.address),
  };
}

export const nameRefused = (lab: Lab) => answers(lab, "the name server refuses to answer", undefined);
export const nameLeadsTo = (lab: Lab, address: string) =>
  answers(lab, `the name server returns ${address}`, address);
