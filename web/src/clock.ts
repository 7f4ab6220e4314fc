// What time it is at the server. Ages and countdowns are told by its clock: on a laptop whose own is
// minutes off, every node would look silent.

let aheadMs = 0;

/** The header counts whole seconds and has travelled: a small difference is none. */
const noticedFromMs = 3_000;

export function hearServerTime(response: Response): void {
  const at = Date.parse(response.headers.get("date") ?? "");
  if (Number.isNaN(at)) return;
  const ahead = at + 500 - Date.now();
  aheadMs = Math.abs(ahead) < noticedFromMs ? 0 : ahead;
}

export function serverNow(): number {
  return Date.now() + aheadMs;
}
