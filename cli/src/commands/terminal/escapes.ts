// What a person types to the command itself and not to the shell: `~` at the beginning of a line and one
// more key, as in ssh. Everything else passes through unchanged, whatever pieces it arrives in.

export type Typed = { send: Buffer } | { command: "disconnect" | "help" };

const TILDE = 0x7e;
const lineEnds = new Set([0x0a, 0x0d]);
const commands: Record<number, "disconnect" | "help"> = { 46: "disconnect", 63: "help" };

export const escapeHelp = [
  "~.  leave the shell to itself and end here",
  "~?  this list",
  "~~  type one ~",
  "Only at the beginning of a line, which is after Enter.",
  "While reconnecting: Ctrl-R tries now, Ctrl-C stops; other keys are kept for the shell.",
];

/** Remembers where on its line the next byte stands. */
export function escapeReader(): (bytes: Buffer) => Typed[] {
  let atLineStart = true;
  let held = false;
  return (bytes) => {
    const result: Typed[] = [];
    let from = 0;
    const passOn = (end: number) => {
      if (end > from) result.push({ send: bytes.subarray(from, end) });
    };
    for (const [index, byte] of bytes.entries()) {
      if (held) {
        held = false;
        const command = commands[byte];
        if (command !== undefined) {
          result.push({ command });
          from = index + 1;
          atLineStart = true;
          continue;
        }
        if (byte === TILDE) {
          // The one that was held back is dropped: the two of them mean this one.
          atLineStart = false;
          continue;
        }
        result.push({ send: Buffer.of(TILDE) });
      } else if (byte === TILDE && atLineStart) {
        passOn(index);
        from = index + 1;
        held = true;
        continue;
      }
      atLineStart = lineEnds.has(byte);
    }
    passOn(bytes.length);
    return result;
  };
}
