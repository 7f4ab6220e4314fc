// Two texts, with what differs between them marked by a sign and a colour.

import { classes } from "../../../design/controls/classes.ts";
import { diffLines, type Line } from "../document/line-diff.ts";

const looks: Record<Line["kind"], { sign: string; word: string; className: string }> = {
  same: { sign: " ", word: "", className: "" },
  added: { sign: "+", word: "added", className: "bg-ok-soft text-ok" },
  removed: { sign: "−", word: "removed", className: "bg-failed-soft text-failed" },
};

type LineDiffProps = { label: string; before: string; after: string };

export function LineDiff({ label, before, after }: LineDiffProps) {
  if (before === after) return <p className="text-ink-muted">They are the same.</p>;
  return (
    // biome-ignore lint/a11y/useSemanticElements: a section would need a heading of its own
    <div
      role="region"
      aria-label={label}
      // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrolling region must be reachable by keyboard
      tabIndex={0}
      className="max-h-96 overflow-auto rounded-md border border-line bg-sunken py-2 font-mono text-sm"
    >
      {diffLines(before, after).map(({ kind, text }, index) => {
        const { sign, word, className } = looks[kind];
        return (
          // biome-ignore lint/suspicious/noArrayIndexKey: the lines of one comparison never move
          <div key={index} className={classes("flex w-max min-w-full px-3 whitespace-pre", className)}>
            <span aria-hidden="true" className="w-5 shrink-0 select-none">
              {sign}
            </span>
            {word && <span className="sr-only">{word}: </span>}
            {text || " "}
          </div>
        );
      })}
    </div>
  );
}
