// The default name of a node: its host name, converted to a valid name.

const LONGEST = 63;

/** Converts any host name to a valid name. */
export function nodeNameFrom(text: string): string {
  const name = text
    .toLowerCase()
    .normalize("NFKD")
    .replace(/[^a-z0-9.-]+/g, "-")
    .slice(0, LONGEST)
    .replace(/^[.-]+|[.-]+$/g, "");
  return name === "" ? "node" : name;
}

/** The name itself, then name-2, name-3 … */
export function numbered(name: string, attempt: number): string {
  if (attempt === 1) return name;
  const suffix = `-${attempt}`;
  return `${name.slice(0, LONGEST - suffix.length)}${suffix}`;
}
