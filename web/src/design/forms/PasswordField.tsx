// A password, with a way to see it. For a new one it says live whether it is long enough.

import { useState } from "react";
import { IconButton } from "../controls/Button.tsx";
import { Icon } from "../controls/Icon.tsx";
import { controlClasses, Field } from "./Field.tsx";
import { passwordHint } from "./password-hint.ts";

type PasswordFieldProps = {
  label: string;
  value: string;
  onChange: (value: string) => void;
  /** A new password is checked for length and offered to the password manager as such. */
  kind: "current" | "new";
  error?: string;
  autoFocus?: boolean;
};

export function PasswordField({ label, value, onChange, kind, error, autoFocus }: PasswordFieldProps) {
  const [visible, setVisible] = useState(false);
  const action = visible ? "Hide password" : "Show password";
  return (
    <Field label={label} error={error} hint={kind === "new" ? passwordHint(value) : undefined}>
      {(wiring) => (
        <div className="relative">
          <input
            {...wiring}
            name={kind === "new" ? "new-password" : "password"}
            type={visible ? "text" : "password"}
            value={value}
            onChange={(event) => onChange(event.currentTarget.value)}
            autoComplete={kind === "new" ? "new-password" : "current-password"}
            maxLength={200}
            required
            // biome-ignore lint/a11y/noAutofocus: only where the page asks for nothing else first
            autoFocus={autoFocus}
            spellCheck={false}
            className={`${controlClasses} pr-10`}
          />
          <IconButton
            label={action}
            aria-pressed={visible}
            onClick={() => setVisible(!visible)}
            className="absolute top-0.5 right-0.5"
          >
            {visible ? <Icon name="eyeOff" /> : <Icon name="eye" />}
          </IconButton>
        </div>
      )}
    </Field>
  );
}
