// A text that filters: it takes effect shortly after typing stops.

import { useEffect, useState } from "react";
import { TextField } from "./Field.tsx";

const settleMs = 300;

type SettlingFieldProps = {
  label: string;
  value: string;
  onSettle: (value: string) => void;
  placeholder?: string;
  className?: string;
};

export function SettlingField({ label, value, onSettle, placeholder, className }: SettlingFieldProps) {
  const [draft, setDraft] = useState(value);
  const [settled, setSettled] = useState(value);
  if (value !== settled) {
    setSettled(value);
    setDraft(value);
  }
  useEffect(() => {
    if (draft.trim() === value) return;
    const timer = setTimeout(() => onSettle(draft.trim()), settleMs);
    return () => clearTimeout(timer);
  }, [draft, value, onSettle]);
  return (
    <TextField
      label={label}
      type="search"
      value={draft}
      onChange={(event) => setDraft(event.currentTarget.value)}
      placeholder={placeholder}
      className={className}
      autoComplete="off"
      spellCheck={false}
    />
  );
}
