// A short message that an action succeeded, also for screen readers. A failure stays in place as an
// ErrorNotice: a message about an error should not disappear.

import { useSyncExternalStore } from "react";
import { type State, StatusMark } from "../values/StatusMark.tsx";

type Toast = { id: number; text: string; state: State };

const shownForMs = 5_000;
let toasts: readonly Toast[] = [];
let nextId = 1;
const listeners = new Set<() => void>();

function set(next: readonly Toast[]): void {
  toasts = next;
  for (const listener of listeners) listener();
}

export function toast(text: string, state: State = "ok"): void {
  const id = nextId++;
  set([...toasts, { id, text, state }]);
  setTimeout(() => set(toasts.filter((each) => each.id !== id)), shownForMs);
}

function subscribe(listener: () => void) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export function useToasts(): readonly Toast[] {
  return useSyncExternalStore(subscribe, () => toasts);
}

export function Toasts() {
  const shown = useToasts();
  return (
    <div role="status" aria-live="polite" className="pointer-events-none fixed right-4 bottom-4 z-[60] grid gap-2">
      {shown.map((each) => (
        <p key={each.id} className="rounded-md border border-line bg-surface px-4 py-2.5 shadow-raised">
          <StatusMark state={each.state}>
            <span className="text-ink">{each.text}</span>
          </StatusMark>
        </p>
      ))}
    </div>
  );
}
