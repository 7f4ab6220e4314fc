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
  const rest = seconds % 60;
  return `${Math.floor(seconds / 60)} min${rest ? ` ${rest} s` : ""}`;
}
