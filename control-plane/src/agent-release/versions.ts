// Which agents this server still supports.

/** The oldest whose heartbeats and tasks this server understands. */
export const OLDEST_SUPPORTED_AGENT = "0.1.0";

const form = /^(\d{1,9})\.(\d{1,9})\.(\d{1,9})(?:[-+].{0,100})?$/;

export function isAgentVersion(text: string): boolean {
  return form.test(text);
}

/** By the three numbers. Undefined: one of them is no version. */
export function isOlderAgent(version: string, required: string): boolean | undefined {
  const [is, must] = [numbersOf(version), numbersOf(required)];
  if (!is || !must) return undefined;
  const differing = is.findIndex((number, index) => number !== must[index]);
  return differing >= 0 && (is[differing] as number) < (must[differing] as number);
}

function numbersOf(version: string): number[] | undefined {
  return form.exec(version)?.slice(1, 4).map(Number);
}
