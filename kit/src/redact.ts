// Removes secrets from text that leaves the process: logs, errors, evidence.
// Every secret of Holdfast has a recognizable prefix (contracts/src/secrets.ts), which is
// what makes this reliable; passwords inside connection URLs are recognised by their position, private
// keys by the lines around them.

// No word boundary in front: inside a JSON string a line break is `\n`, which ends in a letter.
// An enrollment token goes on behind a dot.
const ownSecret = /hf[a-z]_[A-Za-z0-9_-]{16,}(?:\.[A-Za-z0-9_-]{16,})?/g;
// A recovery bundle as one line: its secret is in the compressed part.
const bundleLine = /hfbundle\d\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+/g;
// Up to the last @ before a slash, because people forget to encode one; never past a quote, which
// ends the URL wherever it stands in JSON. Found by what follows the scheme: looking for one took minutes
// in a megabyte of letters.
const urlPassword = /(:\/\/[^\s:/@"]*:)(?:[^\s/"\\]|\\.)+@/gi;
const bearer = /(Bearer|Basic)\s+[A-Za-z0-9+/=._~-]{8,}/gi;
// PEM, also inside JSON strings, where line breaks are escaped. Of a key that was cut off, everything
// that could still be part of it.
const privateKey =
  /-----BEGIN ([A-Z0-9 ]*)PRIVATE KEY-----(?:(?:(?!-----BEGIN)[\s\S]){0,16384}?-----END \1PRIVATE KEY-----|(?:[A-Za-z0-9+/=:,\s-]|\\+[nrt])*)/g;

export function redact(text: string): string {
  return text
    .replace(ownSecret, (secret) => `${secret.slice(0, 4)}[redacted]`)
    .replace(bundleLine, "hfbundle[redacted]")
    .replace(privateKey, "[redacted private key]")
    .replace(urlPassword, "$1[redacted]@")
    .replace(bearer, "$1 [redacted]");
}

/** Shorter ones would hide parts of words everywhere. */
const SHORTEST_VALUE = 8;

/** Returns a function that removes these very values, also as JSON, a URL and base64 write them. */
export function withoutValues(values: readonly string[]): (text: string) => string {
  const forms = values
    .filter(({ length }) => length >= SHORTEST_VALUE)
    .flatMap((value) => [
      value,
      JSON.stringify(value).slice(1, -1),
      encodeURIComponent(value),
      Buffer.from(value).toString("base64").replace(/=+$/, ""),
    ]);
  if (forms.length === 0) return (text) => text;
  // The longest first: one may begin with another.
  const unique = [...new Set(forms)].toSorted((a, b) => b.length - a.length);
  const any = new RegExp(unique.map((form) => form.replace(/[.*+?^${}()|[\]\\/]/g, "\\$&")).join("|"), "g");
  return (text) => text.replace(any, "[redacted]");
}
