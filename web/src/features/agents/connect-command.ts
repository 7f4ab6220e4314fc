// The command that pairs an agent, as it is pasted into a shell.

/** Without empty ones and repetitions. */
export function parsedTags(text: string): string[] {
  const tags = text.split(",").map((tag) => tag.trim());
  return [...new Set(tags.filter((tag) => tag !== ""))];
}

export function connectCommand(token: string, apiBase: string, tags: readonly string[]): string {
  const words = ["holdfast", "agent", "connect", "--pairing-token", token, "--api-base", apiBase];
  return [...words, ...(tags.length === 0 ? [] : ["--tags", tags.join(",")])].map(quoted).join(" ");
}

/** A word that a shell would read differently is put in single quotes. */
function quoted(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", String.raw`'\''`)}'`;
}
