// What a person sees while Holdfast starts and runs: one line per step with the time it took. On a
// terminal the running step is shown and then replaced by its outcome; into a file or a pipe go
// only whole lines, without colour.

export type Terminal = {
  /** Shows the step while it runs and when it is done; `note` adds what it is doing at the moment. */
  step<T>(labels: Labels, work: (note: (text: string) => void) => Promise<T>): Promise<T>;
  line(text: string): void;
  warn(text: string): void;
  /** For the summary: it decides between colour and plain. */
  style: Style;
};

export type Labels = { doing: string; done: string };

export type Style = { bold(text: string): string; dim(text: string): string; accent(text: string): string };

export type Screen = { write(text: string): unknown; isTTY?: boolean };

export function openTerminal(screen: Screen, env: Record<string, string | undefined>): Terminal {
  const interactive = screen.isTTY === true && env["TERM"] !== "dumb";
  const style = interactive && !env["NO_COLOR"] ? coloured : plain;
  const eraseLine = interactive ? "\r\x1b[2K" : "";
  const show = (text: string) => {
    if (interactive) screen.write(`${eraseLine}${style.dim(`  ${text} …`)}`);
  };
  const line = (text: string) => void screen.write(`${eraseLine}${text}\n`);
  return {
    style,
    line,
    warn: (text) => line(`${style.accent("!")} ${text}`),
    step: async ({ doing, done }, work) => {
      const started = performance.now();
      show(doing);
      const note = (text: string) => (interactive ? show(`${doing}: ${text}`) : line(`  ${text}`));
      try {
        const result = await work(note);
        line(`${style.accent("✓")} ${done} ${style.dim(duration(performance.now() - started))}`);
        return result;
      } catch (error) {
        line(`✗ ${doing}`);
        throw error;
      }
    },
  };
}

export function duration(ms: number): string {
  return ms < 1000 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(1)} s`;
}

const plain: Style = { bold: (text) => text, dim: (text) => text, accent: (text) => text };

const coloured: Style = {
  bold: (text) => `\x1b[1m${text}\x1b[22m`,
  dim: (text) => `\x1b[2m${text}\x1b[22m`,
  accent: (text) => `\x1b[36m${text}\x1b[39m`,
};
