// A menu that opens from a button: actions of a row, the organization switcher, the account.

import { Menu as Base } from "@base-ui/react/menu";
import type { ComponentProps, ReactElement, ReactNode } from "react";
import { classes } from "./classes.ts";
import { Icon } from "./Icon.tsx";

type MenuProps = {
  /** The button; it gets its behaviour from here. */
  trigger: ReactElement;
  children: ReactNode;
  align?: "start" | "end";
  side?: "top" | "bottom";
  /** Where the keyboard goes when it closes; left out: back to the button. */
  afterwards?: () => HTMLElement | undefined;
  /** The keyboard focus is on it by then. */
  onClosed?: () => void;
};

export function Menu({ trigger, children, align = "start", side = "bottom", afterwards, onClosed }: MenuProps) {
  return (
    <Base.Root onOpenChangeComplete={(open) => open || onClosed?.()}>
      <Base.Trigger render={trigger} />
      {/* Within a landmark, where screen readers look for content. */}
      <Base.Portal container={document.querySelector("main")}>
        <Base.Positioner sideOffset={6} align={align} side={side} className="z-50 outline-none">
          <Base.Popup
            finalFocus={afterwards && (() => afterwards() ?? true)}
            className={classes(
              "max-h-[min(28rem,var(--available-height))] min-w-[max(11rem,var(--anchor-width))] max-w-80 overflow-y-auto rounded-lg border",
              "border-line bg-surface p-1 text-ink shadow-raised outline-none transition-opacity duration-100",
              "data-starting-style:opacity-0 data-ending-style:opacity-0",
            )}
          >
            {children}
          </Base.Popup>
        </Base.Positioner>
      </Base.Portal>
    </Base.Root>
  );
}

const itemClasses =
  "flex w-full items-center gap-2.5 rounded-sm px-2.5 py-1.5 text-left outline-none select-none " +
  "data-highlighted:bg-hover data-disabled:opacity-55";

type ItemProps = ComponentProps<typeof Base.Item> & { danger?: boolean };

export function MenuItem({ danger, ...rest }: ItemProps) {
  return <Base.Item {...rest} className={classes(itemClasses, danger && "text-failed")} />;
}

type ChoiceProps<T extends string> = {
  label: string;
  value: T;
  onChoose: (value: T) => void;
  choices: { value: T; content: ReactNode }[];
};

/** One of several, with a check mark at the chosen one. */
export function MenuChoice<T extends string>({ label, value, onChoose, choices }: ChoiceProps<T>) {
  return (
    <Base.RadioGroup value={value} onValueChange={(next: T) => onChoose(next)}>
      <MenuLabel>{label}</MenuLabel>
      {choices.map((choice) => (
        <Base.RadioItem key={choice.value} value={choice.value} className={itemClasses} closeOnClick>
          <span className="flex size-4 shrink-0 text-kelp">
            <Base.RadioItemIndicator>
              <Icon name="check" />
            </Base.RadioItemIndicator>
          </span>
          {choice.content}
        </Base.RadioItem>
      ))}
    </Base.RadioGroup>
  );
}

type CheckProps = { checked: boolean; onChange: (checked: boolean) => void; children: ReactNode };

export function MenuCheck({ checked, onChange, children }: CheckProps) {
  return (
    <Base.CheckboxItem checked={checked} onCheckedChange={(next) => onChange(next)} className={itemClasses}>
      <span className="flex size-4 shrink-0 text-kelp">
        <Base.CheckboxItemIndicator>
          <Icon name="check" />
        </Base.CheckboxItemIndicator>
      </span>
      {children}
    </Base.CheckboxItem>
  );
}

function MenuLabel({ children }: { children: ReactNode }) {
  return <Base.GroupLabel className="px-2.5 pt-1.5 pb-1 text-xs text-ink-muted">{children}</Base.GroupLabel>;
}

export function MenuSeparator() {
  return <Base.Separator className="my-1 h-px bg-line" />;
}
