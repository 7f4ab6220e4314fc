// Looks for planted secrets in everything that left the product, as it is and as JSON, URLs, hex and base64 write it.

import type { TarFile } from "@holdfast/kit/tar";

type Leak = { secret: string; path: string };

export function findLeaks(files: readonly TarFile[], secrets: Readonly<Record<string, string>>): Leak[] {
  return files.flatMap(({ path, content }) => {
    const text = `${path}\n${content.toString("utf8")}`;
    return Object.entries(secrets).flatMap(([name, value]) =>
      formsOf(value).some((form) => text.includes(form)) ? [{ secret: name, path }] : [],
    );
  });
}

function formsOf(value: string): string[] {
  const bytes = Buffer.from(value);
  const escaped = JSON.stringify(value).slice(1, -1);
  return [
    value,
    escaped,
    JSON.stringify(escaped).slice(1, -1),
    encodeURIComponent(value),
    bytes.toString("hex"),
    ...[0, 1, 2].map((skipped) => bytes.subarray(skipped).toString("base64").replace(/=+$/, "").slice(0, -1)),
  ].filter(({ length }) => length >= 8);
}
