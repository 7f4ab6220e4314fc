// Selects one of many items, searched on the server while typing: there may be thousands, so a page never holds all.

import { Combobox } from "@base-ui/react/combobox";
import { keepPreviousData, type QueryKey, useQuery } from "@tanstack/react-query";
import { type ReactNode, useMemo, useState } from "react";
import { problemOf } from "../../problem.ts";
import { useSettled } from "../../use-settled.ts";
import { IconButton } from "../controls/Button.tsx";
import { classes } from "../controls/classes.ts";
import { Icon } from "../controls/Icon.tsx";
import { controlClasses, Field } from "./Field.tsx";

export type PickerOption = { id: string; label: string; detail?: string };
export type Found = { options: PickerOption[] /** Left out: not known. */; total?: number; hasMore: boolean };

type PickerProps = {
  label: string;
  hint?: ReactNode;
  className?: string;
  /** In the singular and in lower case, such as `node`. */
  noun: string;
  value: PickerOption | null;
  onChange: (option: PickerOption | null) => void;
  /** Under which the answers are kept; the text is added. */
  queryKey: QueryKey;
  find: (text: string, signal: AbortSignal) => Promise<Found>;
  /** What no choice means; left out, something has to be chosen. */
  none?: string;
};

export const FOUND_AT_ONCE = 20;
const settleMs = 200;
const figures = new Intl.NumberFormat("en");

export function Picker({ label, hint, className, noun, value, onChange, queryKey, find, none }: PickerProps) {
  const [open, setOpen] = useState(false);
  const [text, setText] = useState("");
  const settled = useSettled(text.trim(), settleMs);
  const found = useQuery({
    queryKey: [...queryKey, settled],
    queryFn: ({ signal }) => find(settled, signal),
    placeholderData: keepPreviousData,
    enabled: open,
  });
  // The same object as long as it is the same choice: another one would take the place of what is being typed.
  const { id, label: name = "" } = value ?? {};
  const chosen = useMemo(() => (id === undefined ? null : { id, label: name }), [id, name]);
  const options = found.data?.options ?? [];
  const status = statusOf();
  const searching = settled !== text.trim() || found.isFetching;
  return (
    <Field label={label} hint={hint} className={className}>
      {(wiring) => (
        <Combobox.Root<PickerOption>
          items={options}
          filter={null}
          value={chosen}
          onValueChange={(next) => onChange(next)}
          itemToStringLabel={(option) => option.label}
          itemToStringValue={(option) => option.id}
          isItemEqualToValue={(one, other) => one.id === other.id}
          onOpenChange={setOpen}
          // The text in the field when it opens is the current choice, not a search.
          onInputValueChange={(next, { reason }) => setText(reason === "input-change" ? next : "")}
          required={none === undefined}
          autoHighlight
        >
          <Combobox.InputGroup className="relative">
            <Combobox.Input
              {...wiring}
              placeholder={none ?? `Search for a ${noun}`}
              spellCheck={false}
              className={classes(controlClasses, value && none !== undefined ? "pr-16" : "pr-9")}
            />
            <div className="absolute inset-y-0 right-1 flex items-center">
              {none !== undefined && (
                <Combobox.Clear render={<IconButton label={`Clear ${label.toLowerCase()}`} className="size-7" />}>
                  <Icon name="close" className="size-3.5" />
                </Combobox.Clear>
              )}
              <Combobox.Trigger
                render={<IconButton label={`Show the ${noun}s`} className="size-7 text-ink-muted" />}
              >
                <Icon name="chevron" />
              </Combobox.Trigger>
            </div>
          </Combobox.InputGroup>
          <Combobox.Portal>
            <Combobox.Positioner sideOffset={4} className="z-50 outline-none">
              {/* A landmark, because it stands outside those of the page. */}
              <Combobox.Popup
                role="region"
                aria-label={`${label}: choices`}
                aria-busy={searching || undefined}
                className={classes(
                  "flex max-h-[min(20rem,var(--available-height))] w-[max(14rem,var(--anchor-width))] flex-col",
                  "max-w-[var(--available-width)] rounded-lg border border-line bg-surface text-ink shadow-raised",
                )}
              >
                <Combobox.List className="overflow-y-auto overscroll-contain p-1 outline-none empty:hidden">
                  {(option: PickerOption) => (
                    <Combobox.Item
                      key={option.id}
                      value={option}
                      className="flex items-center gap-2 rounded-sm px-2 py-1.5 outline-none select-none data-highlighted:bg-hover"
                    >
                      <span className="flex size-4 shrink-0 text-kelp">
                        <Combobox.ItemIndicator>
                          <Icon name="check" />
                        </Combobox.ItemIndicator>
                      </span>
                      <span className="flex min-w-0 flex-wrap items-baseline gap-x-2 [overflow-wrap:anywhere]">
                        {option.label}
                        {option.detail && <span className="text-sm text-ink-muted">{option.detail}</span>}
                      </span>
                    </Combobox.Item>
                  )}
                </Combobox.List>
                {/* With `Empty` there, Escape closes this popup only, and not the dialog around it. */}
                <Combobox.Empty className="px-3 py-2 text-sm text-ink-muted empty:hidden">{status}</Combobox.Empty>
                <Combobox.Status className="border-t border-line px-3 py-2 text-sm text-ink-muted empty:hidden">
                  {options.length > 0 && status}
                </Combobox.Status>
              </Combobox.Popup>
            </Combobox.Positioner>
          </Combobox.Portal>
        </Combobox.Root>
      )}
    </Field>
  );

  function statusOf(): string | undefined {
    if (found.error) return `${problemOf(found.error).message} ${problemOf(found.error).nextStep}`;
    if (!found.data) return "Searching …";
    const { total, hasMore } = found.data;
    if (options.length === 0) return settled ? `No ${noun} matches “${settled}”.` : `No ${noun} available.`;
    if (!hasMore) return undefined;
    return `Showing ${options.length}${total === undefined ? "" : ` of ${figures.format(total)}`}. Type to search all.`;
  }
}
