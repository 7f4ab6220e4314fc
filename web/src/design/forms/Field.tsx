// A labelled control with its hint and its error, joined for screen readers.

import { type ComponentProps, type ReactNode, useId } from "react";
import { classes } from "../controls/classes.ts";
import { Icon } from "../controls/Icon.tsx";

const frameClasses =
  "w-full rounded-md border border-line-strong bg-surface px-3 text-ink placeholder:text-ink-muted " +
  "aria-invalid:border-failed disabled:opacity-60 disabled:bg-sunken read-only:not-[select]:bg-sunken";
export const controlClasses = `h-9 ${frameClasses}`;

export type Wiring = { id: string; "aria-describedby"?: string; "aria-invalid"?: true };

type FieldProps = {
  label: string;
  hint?: ReactNode;
  error?: string;
  optional?: boolean;
  className?: string;
  children: (wiring: Wiring) => ReactNode;
};

export function Field({ label, hint, error, optional, className, children }: FieldProps) {
  const id = useId();
  const describedBy = [hint && `${id}-hint`, error && `${id}-error`].filter(Boolean).join(" ");
  return (
    <div className={className}>
      <label htmlFor={id} className="mb-1.5 block font-medium">
        {label}
        {optional && <span className="font-normal text-ink-muted"> (optional)</span>}
      </label>
      {children({
        id,
        ...(describedBy ? { "aria-describedby": describedBy } : {}),
        ...(error ? { "aria-invalid": true } : {}),
      })}
      {error && (
        <p id={`${id}-error`} className="mt-1.5 text-sm text-failed">
          {error}
        </p>
      )}
      {hint && (
        <p id={`${id}-hint`} className="mt-1.5 text-sm text-ink-muted">
          {hint}
        </p>
      )}
    </div>
  );
}

type Described = Pick<FieldProps, "label" | "hint" | "error" | "optional">;

export function TextField({
  label,
  hint,
  error,
  optional,
  className,
  ...input
}: ComponentProps<"input"> & Described) {
  return (
    <Field label={label} hint={hint} error={error} optional={optional} className={className}>
      {(wiring) => <input {...input} {...wiring} className={controlClasses} />}
    </Field>
  );
}

export function SelectField({ label, hint, error, className, ...select }: ComponentProps<"select"> & Described) {
  return (
    <Field label={label} hint={hint} error={error} className={className}>
      {(wiring) => (
        <span className="relative block">
          <select {...select} {...wiring} className={classes(controlClasses, "appearance-none pr-9")} />
          <Icon name="chevron" className="pointer-events-none absolute top-2.5 right-2.5 size-4 text-ink-muted" />
        </span>
      )}
    </Field>
  );
}

type TextareaProps = ComponentProps<"textarea"> &
  Described & {
    mono?: boolean;
    /** What is typed is shown as dots, as in a password field. */
    concealed?: boolean;
  };

export function TextareaField(props: TextareaProps) {
  const { label, hint, error, optional, className, mono, concealed, ...area } = props;
  return (
    <Field label={label} hint={hint} error={error} optional={optional} className={className}>
      {(wiring) => (
        <textarea
          {...area}
          {...wiring}
          spellCheck={false}
          className={classes(
            frameClasses,
            "block py-2",
            mono && "font-mono text-sm",
            concealed && "[-webkit-text-security:disc]",
          )}
        />
      )}
    </Field>
  );
}

type CheckboxProps = Omit<ComponentProps<"input">, "type"> & { label: ReactNode; hint?: string };

export function Checkbox({ label, hint, ...input }: CheckboxProps) {
  return (
    <label className="flex items-start gap-2.5">
      <span className="relative mt-[3px] size-4 shrink-0">
        <input
          {...input}
          type="checkbox"
          className="peer size-4 appearance-none rounded-sm border border-line-strong bg-surface checked:border-kelp checked:bg-kelp"
        />
        <Icon
          name="check"
          className="pointer-events-none absolute inset-0 size-4 scale-75 text-on-kelp opacity-0 peer-checked:opacity-100"
        />
      </span>
      <span>
        {label}
        {hint && <span className="block text-sm text-ink-muted">{hint}</span>}
      </span>
    </label>
  );
}

type RadioGroupProps<V extends string> = {
  legend: string;
  options: readonly { value: V; label: ReactNode }[];
  value: V;
  onChange: (value: V) => void;
};

export function RadioGroup<V extends string>({ legend, options, value, onChange }: RadioGroupProps<V>) {
  const name = useId();
  return (
    <fieldset>
      <legend className="mb-1.5 font-medium">{legend}</legend>
      <div className="flex flex-wrap gap-x-6 gap-y-1.5">
        {options.map((option) => (
          <label key={option.value} className="flex items-center gap-2.5">
            <input
              type="radio"
              name={name}
              checked={option.value === value}
              onChange={() => onChange(option.value)}
              className="size-4 appearance-none rounded-full border border-line-strong bg-surface checked:border-[5px] checked:border-kelp"
            />
            {option.label}
          </label>
        ))}
      </div>
    </fieldset>
  );
}
