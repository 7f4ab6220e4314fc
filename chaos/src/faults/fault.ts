// A fault: one thing that is broken, and how it is mended. Both can be done by themselves, in any order and
// together with others; mending what is whole does nothing.

export type Fault = {
  /** To a person, such as "the router drops what goes to the api". */
  what: string;
  inflict(): Promise<void>;
  mend(): Promise<void>;
};

/** Several at once, mended in the opposite order. */
export function together(what: string, ...faults: Fault[]): Fault {
  return {
    what,
    async inflict() {
      for (const fault of faults) await fault.inflict();
    },
    async mend() {
      for (const fault of faults.toReversed()) await fault.mend();
    },
  };
}
