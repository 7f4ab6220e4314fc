// Buttons, and links that look like them.

import type { ComponentProps } from "react";
import { classes } from "./classes.ts";

export type ButtonLook = "primary" | "secondary" | "quiet" | "danger";

const looks: Record<ButtonLook, string> = {
  primary: "bg-kelp text-on-kelp hover:bg-kelp-strong border-transparent",
  secondary: "bg-surface text-ink border-line-strong hover:bg-hover",
  quiet: "bg-transparent text-ink border-transparent hover:bg-hover",
  danger: "bg-failed text-on-failed border-transparent hover:opacity-90",
};

export function buttonClasses(look: ButtonLook = "secondary", className?: string): string {
  return classes(
    "inline-flex h-9 items-center justify-center gap-2 rounded-md border px-3.5 font-medium whitespace-nowrap",
    "transition-colors disabled:opacity-55 disabled:pointer-events-none aria-busy:cursor-progress",
    looks[look],
    className,
  );
}

type ButtonProps = ComponentProps<"button"> & { look?: ButtonLook; busy?: boolean };

/** While busy it stays focusable, so that the keyboard does not lose its place, but does nothing. */
export function Button({ look, busy = false, className, onClick, type = "button", ...rest }: ButtonProps) {
  return (
    <button
      {...rest}
      type={busy && type === "submit" ? "button" : type}
      className={buttonClasses(look, className)}
      aria-busy={busy || undefined}
      onClick={busy ? undefined : onClick}
    />
  );
}

/** `onDeep`: on the dark bar. */
type IconButtonProps = ComponentProps<"button"> & { label: string; onDeep?: boolean };

const iconLooks = {
  plain: "text-ink-muted hover:bg-hover hover:text-ink data-popup-open:bg-hover",
  onDeep:
    "text-on-deep-muted hover:bg-deep-hover hover:text-on-deep data-popup-open:bg-deep-hover data-popup-open:text-on-deep",
};

export function IconButton({ label, onDeep = false, className, ...rest }: IconButtonProps) {
  return (
    <button
      type="button"
      {...rest}
      aria-label={label}
      title={label}
      className={classes(
        "flex size-8 shrink-0 items-center justify-center rounded-md transition-colors disabled:opacity-55",
        iconLooks[onDeep ? "onDeep" : "plain"],
        className,
      )}
    />
  );
}
