// Canonical JSON (RFC 8785): one text for one value, so that a signature made over it in one
// process can be checked in another that has only the value. ECMAScript already writes numbers and
// strings as the RFC wants them; what is left is the order of names and what cannot be written.

/** Throws for what JSON cannot hold: undefined, functions, NaN, infinities, lone surrogates. */
export function canonicalJson(value: unknown): string {
  if (value === null || typeof value === "boolean") return String(value);
  if (typeof value === "number") {
    if (!Number.isFinite(value)) throw new TypeError(`${value} cannot be written as JSON`);
    return JSON.stringify(value);
  }
  if (typeof value === "string") {
    if (!value.isWellFormed()) throw new TypeError("a string with half a character cannot be written as JSON");
    return JSON.stringify(value);
  }
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(",")}]`;
  if (typeof value !== "object") throw new TypeError(`a ${typeof value} cannot be written as JSON`);
  // By UTF-16 code units, which is how sort compares strings.
  const names = Object.keys(value).sort();
  const members = names.map((name) => {
    return `${canonicalJson(name)}:${canonicalJson((value as Record<string, unknown>)[name])}`;
  });
  return `{${members.join(",")}}`;
}
