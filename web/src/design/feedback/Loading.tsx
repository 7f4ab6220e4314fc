// Something is on its way. Appears only after a moment, so that fast answers do not flicker.

export function Loading({ what }: { what: string }) {
  return (
    <p role="status" className="appear-late flex items-center gap-2.5 py-6 text-ink-muted">
      <span
        aria-hidden="true"
        className="size-3.5 animate-spin rounded-full border-2 border-line-strong border-t-kelp"
      />
      Loading {what}…
    </p>
  );
}
