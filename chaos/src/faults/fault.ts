// A fault: one thing that is broken, and how it is repaired. Both can be done by themselves, in any order and
// together with others; repairing what is whole does nothing.

export type Fault = {
  /** To a person, such as "the router drops what goes to the api". */
  what: string;
  inject(): Promise<void>;
  repair(): Promise<void>;
};

/** Several at once, repaired in the opposite order. */
export function together(what: string, ...faults: Fault[]): Fault {
  return {
    what,
    async inject() {
      for (const fault of faults) await fault.inject();
    },
    async repair() {
      for (const fault of faults.toReversed()) await fault.repair();
    },
  };
}
