// The server's time. Ages and countdowns use its clock: on a laptop whose clock is
// minutes off, every node would look offline.

let aheadMs = 0;

/** The header has whole seconds and network latency: a small difference is ignored. */
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
