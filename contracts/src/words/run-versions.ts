// What a run runs, in words.

/** Numbers below zero are documents of tests. */
export const isStepTest = ({ version }: { version: number }) => version < 0;

export const versionWords = (run: { version: number }) =>
  isStepTest(run) ? "test of a step" : `version ${run.version}`;
