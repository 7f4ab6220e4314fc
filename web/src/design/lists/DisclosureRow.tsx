// An entry of a list: a line with its state, and on demand its details.

import { type ReactNode, useId } from "react";
import { classes } from "../controls/classes.ts";
import { Icon } from "../controls/Icon.tsx";
import { CopyableId } from "../values/Copy.tsx";

type DisclosureRowProps = {
  opened: boolean;
  onToggle: () => void;
  /** What the button says. */
  summary: ReactNode;
  /** Beside it, or below it where there is no room. */
  note: ReactNode;
  actions?: ReactNode;
  /** Below the line, whether it is opened or not. */
  children?: ReactNode;
  /** Rendered while it is opened. */
  details: () => ReactNode;
};

export function DisclosureRow(props: DisclosureRowProps) {
  const { opened, onToggle, summary, note, actions, children, details } = props;
  const id = useId();
  return (
    <li className="border-b border-line px-5 py-3 last:border-b-0">
      <div className="flex flex-wrap items-center gap-x-4 gap-y-1.5">
        <button
          type="button"
          onClick={onToggle}
          aria-expanded={opened}
          aria-controls={id}
          className="-ml-1.5 flex min-w-0 flex-1 items-center gap-2 rounded-sm text-left"
        >
          <Icon
            name="chevron"
            className={classes("size-4 shrink-0 text-ink-muted transition-transform", !opened && "-rotate-90")}
          />
          <span className="flex min-w-0 flex-wrap items-baseline gap-x-3">
            {summary}
            <span className="sr-only">: details</span>
          </span>
        </button>
        <span className="text-sm text-ink-muted max-sm:order-last max-sm:ml-4.5 max-sm:basis-full">{note}</span>
        {actions}
      </div>
      {children}
      <div id={id} hidden={!opened} className="mt-3 space-y-3 sm:ml-4.5">
        {opened && details()}
      </div>
    </li>
  );
}

type DetailsFooterProps = { correlationId: string; children?: ReactNode };

/** The last line of the details: the correlation id, and a link to where there is more. */
export function DetailsFooter({ correlationId, children }: DetailsFooterProps) {
  return (
    <div className="flex flex-wrap items-center justify-between gap-x-6 gap-y-1 text-sm text-ink-muted">
      <span className="flex flex-wrap items-center gap-x-1.5">
        Correlation id <CopyableId id={correlationId} label="Copy correlation id" />
      </span>
      {children}
    </div>
  );
}
