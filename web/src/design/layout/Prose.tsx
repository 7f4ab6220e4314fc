// Text from the server may mark code with backticks, as in "run `holdfast status`".

import { classes } from "../controls/classes.ts";

export function Prose({ text }: { text: string }) {
  return text.split("`").map((part, index) =>
    index % 2 === 0 ? (
      part
    ) : (
      // biome-ignore lint/suspicious/noArrayIndexKey: the parts of one text never move
      <Code key={index}>{part}</Code>
    ),
  );
}

export function Code({ children }: { children: string }) {
  return (
    <code
      className={classes(
        "rounded-sm bg-sunken px-1 py-px font-mono text-[0.92em]",
        // A command is read as one; only what would not fit a narrow screen may break.
        children.length < 30 ? "whitespace-nowrap" : "[overflow-wrap:anywhere]",
      )}
    >
      {children}
    </code>
  );
}
