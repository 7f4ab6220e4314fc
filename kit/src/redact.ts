// Takes secrets out of text that is about to leave the process: logs, errors, evidence.
// Every secret Holdfast makes carries a recognisable prefix (contracts/src/secrets.ts), which is
// what makes this reliable; passwords inside connection URLs are recognised by their position.

// No word boundary in front: inside a JSON string a line break is `\n`, which ends in a letter.
const ownSecret = /hf[a-z]_[A-Za-z0-9_-]{16,}/g;
// Up to the last @ before a slash, because people forget to encode one; never past a quote, which
// ends the URL wherever it stands in JSON.
const urlPassword = /([a-z][a-z0-9+.-]*:\/\/[^\s:/@"]*:)(?:[^\s/"\\]|\\.)+@/gi;
const bearer = /(Bearer|Basic)\s+[A-Za-z0-9+/=._~-]{8,}/gi;

export function redact(text: string): string {
  return text
    .replace(ownSecret, (secret) => `${secret.slice(0, 4)}[redacted]`)
    .replace(urlPassword, "$1[redacted]@")
    .replace(bearer, "$1 [redacted]");
}
