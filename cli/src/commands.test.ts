// A command is a file below commands/ and one entry in main.ts, or a call in the file of its noun.

import { readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";

const root = fileURLToPath(new URL(".", import.meta.url));
const read = (path: string) => readFileSync(join(root, path), "utf8");
const sources = readdirSync(root, { recursive: true, encoding: "utf8" }).filter(
  (path) => path.endsWith(".ts") && !path.includes(".test."),
);

const importersOf = (path: string) =>
  sources.filter((other) =>
    [...read(other).matchAll(/(?:from|import\() ?"(\.[^"]+)"/g)].some(
      ([, target = ""]) => join(dirname(other), target) === path,
    ),
  );
const declaring = (pattern: RegExp) => sources.filter((path) => pattern.test(read(path)));

it("lists a command in main.ts, or in the file of the noun it belongs to, and nowhere else", () => {
  const files = declaring(/export (async )?function \w+Command\(\)/);
  expect(files.length).toBeGreaterThan(15);
  const strays = files.flatMap((path) =>
    importersOf(path)
      .filter((other) => other !== "main.ts" && dirname(other) !== dirname(path))
      .map((other) => [path, other]),
  );
  expect(strays).toEqual([]);
  expect(files.filter((path) => importersOf(path).length === 0)).toEqual([]);
});

it("adds a subcommand in the folder of its noun, and nowhere else", () => {
  const files = declaring(/export function add[A-Z]\w*\(\w+: Command\)/);
  expect(files.length).toBeGreaterThan(3);
  const adders = files.flatMap((path) => {
    const [, name] = /export function (add[A-Z]\w*)\(\w+: Command\)/.exec(read(path)) ?? [];
    return importersOf(path)
      .filter((other) => read(other).includes(`${name}(`))
      .map((other) => [dirname(path), dirname(other)]);
  });
  expect(adders.length).toBeGreaterThanOrEqual(files.length);
  expect(adders.filter(([noun, adder]) => noun !== adder)).toEqual([]);
});
