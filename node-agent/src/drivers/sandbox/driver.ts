// What the execution of shell steps needs of a sandbox. The contract suite (test/drivers/sandbox) defines what every
// implementation must do. Output is limited, and deadlines are kept, by whoever uses it.

export type SandboxDriver = {
  /** As it is called in results. */
  readonly name: string;
  /** Starts a script. Problems are reported by `ended`. */
  run(order: SandboxOrder): SandboxRun;
  /** Ends and removes what an agent that was killed left behind. Returns how many runs that were. */
  recover(): Promise<number>;
};

export type OutputStream = "stdout" | "stderr";

export type SandboxOrder = {
  shell: "sh" | "bash";
  script: string;
  /** In addition to a minimal one. Nothing of the agent's environment is inherited. */
  env: Readonly<Record<string, string>>;
  /** For the script alone, as `HOLDFAST_EXECUTION_SECRET`. */
  secret?: string | undefined;
  onOutput(stream: OutputStream, text: string): void;
};

export type SandboxEnd = {
  /** Null: it was ended by `kill`. A script that dies by a signal has 128 and its number, as in a shell. */
  exitCode: number | null;
};

export type SandboxRun = {
  /**
   * Resolves when nothing is left of the run: no process, whatever the script started, and no directory. Rejects with a
   * message for a person when it could not be started.
   */
  ended: Promise<SandboxEnd>;
  /** Ends everything that the script has started, at once. */
  kill(): void;
};

export const SECRET_VARIABLE = "HOLDFAST_EXECUTION_SECRET";
