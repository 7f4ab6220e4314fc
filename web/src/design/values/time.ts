// Times in words. `now` is a parameter: the page's clock moves, tests' does not.

const units: [unit: Intl.RelativeTimeFormatUnit, seconds: number][] = [
  ["year", 31_536_000],
  ["month", 2_592_000],
  ["day", 86_400],
  ["hour", 3_600],
  ["minute", 60],
];

const relative = new Intl.RelativeTimeFormat("en", { numeric: "always" });

/** The past is rounded down and the future to the nearest: "in 7 days" holds a second later too. */
export function timeAgo(at: string, now: number): string {
  const seconds = (Date.parse(at) - now) / 1000;
  for (const [unit, size] of units) {
    const count = seconds < 0 ? Math.trunc(seconds / size) : Math.round(seconds / size);
    if (count !== 0 && Math.abs(seconds) > size * 0.9) return relative.format(count, unit);
  }
  return seconds > 5 ? "in less than a minute" : "just now";
}

const pad = (value: number) => String(value).padStart(2, "0");

/** In the reader's time zone, year first, so that columns of times compare by eye. */
export function exactTime(at: string): string {
  const time = new Date(at);
  const day = `${time.getFullYear()}-${pad(time.getMonth() + 1)}-${pad(time.getDate())}`;
  return `${day} ${pad(time.getHours())}:${pad(time.getMinutes())}:${pad(time.getSeconds())}`;
}

/** 75 → "1 min 15 s", as people say how long to wait. */
export function duration(seconds: number): string {
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return both(`${minutes} min`, seconds % 60, "s");
  const hours = Math.floor(minutes / 60);
  if (hours < 48) return both(`${hours} h`, minutes % 60, "min");
  return both(`${Math.floor(hours / 24)} days`, hours % 24, "h");
}

function both(whole: string, rest: number, unit: string): string {
  return rest ? `${whole} ${rest} ${unit}` : whole;
}

/** How long something took: 0.4 ms, 340 ms, 1.2 s, then as `duration`. */
export function tookMs(ms: number): string {
  if (ms < 10) return `${Math.round(ms * 10) / 10} ms`;
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1_000).toFixed(1)} s`;
  return duration(Math.round(ms / 1_000));
}

/** A time further in the future than this was written by a clock that was wrong. */
const SKEW_SECONDS = 60;

/** The age of something that should be young, so that every second counts: 4 s ago. */
export function secondsAgo(at: string, now: number): string {
  const age = Math.floor((now - Date.parse(at)) / 1_000);
  if (age < -SKEW_SECONDS) return `${duration(-age)} ahead of the server's clock`;
  const seconds = Math.max(0, age);
  return seconds < 60 ? `${seconds} s ago` : timeAgo(at, now);
}
