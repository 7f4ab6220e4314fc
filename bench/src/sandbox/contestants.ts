// The two sides of the `sandbox` bench, for one backend.

export type Contestants = {
  /** Each runs a script that does nothing, once. */
  ours(): Promise<void>;
  theirs(): Promise<void>;
  /** What is left on the host of all runs of ours, for a person. */
  left(): string;
};
