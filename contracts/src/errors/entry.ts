// What the catalogue says about an error.

export type ErrorEntry = {
  status: number;
  /** What happened, to a person. A call may replace it with something more exact. */
  message: string;
  /** The same request may succeed later, unchanged. */
  retryable: boolean;
  /** What to do now. */
  nextStep: string;
};

/** A refusal that is also a reason of its own has the words of that reason. */
export function wordsOf({ message, nextStep }: Pick<ErrorEntry, "message" | "nextStep">) {
  return { message, nextStep };
}
