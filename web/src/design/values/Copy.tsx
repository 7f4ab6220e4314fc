// Copying to the clipboard: a button that says when it worked, and a field for secrets shown once.

import { useEffect, useId, useState } from "react";
import { Button, IconButton } from "../controls/Button.tsx";
import { Icon } from "../controls/Icon.tsx";

function useCopy(text: string) {
  const [copied, setCopied] = useState(false);
  useEffect(() => {
    if (!copied) return;
    const timer = setTimeout(() => setCopied(false), 2000);
    return () => clearTimeout(timer);
  }, [copied]);
  return { copied, copy: () => void writeClipboard(text).then(setCopied) };
}

/** The clipboard API exists only on https and localhost; elsewhere a selection is copied instead. */
export async function writeClipboard(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const area = document.createElement("textarea");
    area.value = text;
    area.className = "fixed opacity-0";
    (document.activeElement?.parentElement ?? document.body).append(area);
    const before = document.activeElement;
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    if (before instanceof HTMLElement) before.focus();
    return done;
  }
}

export function CopyIconButton({ text, label }: { text: string; label: string }) {
  const { copied, copy } = useCopy(text);
  return (
    <IconButton label={copied ? "Copied" : label} onClick={copy} className="-my-1 size-6">
      {copied ? <Icon name="check" className="size-3.5 text-ok" /> : <Icon name="copy" className="size-3.5" />}
    </IconButton>
  );
}

export function CopyField({ label, value, hint }: { label: string; value: string; hint?: string }) {
  const id = useId();
  const { copied, copy } = useCopy(value);
  return (
    <div>
      <label htmlFor={id} className="mb-1.5 block font-medium">
        {label}
      </label>
      <div className="flex gap-2">
        <input
          id={id}
          readOnly
          value={value}
          onFocus={(event) => event.currentTarget.select()}
          className="h-9 min-w-0 flex-1 rounded-md border border-line-strong bg-sunken px-3 font-mono text-sm"
        />
        <Button look="primary" onClick={copy} className="w-24" aria-label={`Copy ${label.toLowerCase()}`}>
          {copied ? <Icon name="check" /> : <Icon name="copy" />}
          {copied ? "Copied" : "Copy"}
        </Button>
      </div>
      {hint && <p className="mt-1.5 text-sm text-ink-muted">{hint}</p>}
      <p role="status" className="sr-only">
        {copied ? `${label} copied` : ""}
      </p>
    </div>
  );
}

/** A command that is too long for a line: shown whole, copied as one. */
export function CopyBlock({ label, value }: { label: string; value: string }) {
  const id = useId();
  const { copied, copy } = useCopy(value);
  return (
    <div>
      <div className="mb-2 flex items-end justify-between gap-4">
        <label htmlFor={id} className="font-medium">
          {label}
        </label>
        <Button look="primary" onClick={copy} className="w-24" aria-label={`Copy ${label.toLowerCase()}`}>
          {copied ? <Icon name="check" /> : <Icon name="copy" />}
          {copied ? "Copied" : "Copy"}
        </Button>
      </div>
      <textarea
        id={id}
        readOnly
        rows={4}
        value={value}
        spellCheck={false}
        onFocus={(event) => event.currentTarget.select()}
        className="field-sizing-content block w-full resize-none rounded-md border border-line-strong bg-sunken px-3 py-2.5 font-mono text-sm break-all"
      />
      <p role="status" className="sr-only">
        {copied ? `${label} copied` : ""}
      </p>
    </div>
  );
}

/** An id in mono, with a button to copy it. */
export function CopyableId({ id, label }: { id: string; label: string }) {
  return (
    <span className="flex min-h-5.5 max-w-full items-center gap-1">
      <span className="min-w-0 font-mono text-sm [overflow-wrap:anywhere]">{id}</span>
      <CopyIconButton text={id} label={label} />
    </span>
  );
}
