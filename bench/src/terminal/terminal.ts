// A shell somewhere, as a client sees it: bytes go in, bytes come out. Every side of the `terminal` bench is
// one of these, so that all of them are measured by the same loop.

export type Output = Buffer | string;

export type Terminal = {
  write(text: string): void;
  /** Output goes to the newest listener only; there is none at first, and what comes then is lost. */
  listen(listener: (output: Output) => void): void;
  close(): void | Promise<void>;
};

/** Something that gives terminals. */
export type TerminalSide = {
  /** Listens from the first byte on. */
  open(listener: (output: Output) => void): Promise<Terminal>;
};

/** Wide enough that no line of the measurements wraps: wrapping is work of the shell, not of the path. */
export const size = { cols: 200, rows: 50 };

/** What has to come within this long comes, or the measurement has failed. */
const PATIENCE_MS = 120_000;

/** The first answer of `look` that is not undefined. */
export function outputOf<T>(terminal: Terminal, look: (output: Output) => T | undefined): Promise<T> {
  const { promise, resolve, reject } = Promise.withResolvers<T>();
  const deadline = setTimeout(() => reject(new Error("the terminal fell silent")), PATIENCE_MS);
  terminal.listen((output) => {
    const found = look(output);
    if (found === undefined) return;
    terminal.listen(() => undefined);
    clearTimeout(deadline);
    resolve(found);
  });
  return promise;
}

/** A terminal whose shell has shown its prompt. */
export async function openAtPrompt(side: TerminalSide): Promise<Terminal> {
  const prompt = Promise.withResolvers<void>();
  const deadline = setTimeout(() => prompt.reject(new Error("no prompt came")), PATIENCE_MS);
  let seen = "";
  const opening = side.open((output) => {
    seen = (seen + output.toString()).slice(-4096);
    if (endsInPrompt(seen)) prompt.resolve();
  });
  // A failure to open is reported separately; nothing waits for the prompt then.
  prompt.promise.catch(() => undefined);
  try {
    const terminal = await opening;
    await prompt.promise;
    terminal.listen(() => undefined);
    return terminal;
  } finally {
    clearTimeout(deadline);
  }
}

/** As Debian's shells end it. */
function endsInPrompt(text: string): boolean {
  return /[$#] $/.test(text);
}
