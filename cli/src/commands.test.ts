// A command is a file below commands/ and one entry in main.ts, or a call in the file of its noun.

import { readdirSync, readFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";

const root = fileURLToPath(new URL(".", import.meta.url));
const read = (path: string) => readFileSync(join(root, path), "utf8");
const sources = readdirSync(root, { recursive: true, encoding: "utf8" }).filter(
  (path) => path.endsWith(".ts") && !path.includes(".test."),
);

const importersOf = (path: string) =>
  sources.filter((other) =>
    [...read(other).matchAll(/(?:from|import) ?\(? ?"(\.[^"]+)"/g)].some(
      ([, target = ""]) => join(dirname(other), target) === path,
    ),
  );
const declaring = (pattern: RegExp) => sources.filter((path) => pattern.test(read(path)));

it("lists a command in main.ts, or in the file of the noun it belongs to, and nowhere else", () => {
  const files = declaring(/export (async )?function \w+Command\(\)/);
  expect(files.length).toBeGreaterThan(15);
  const isOfNoun = (path: string, other: string) =>
    dirname(path) !== "commands" && dirname(other) === dirname(path);
  const strays = files.flatMap((path) => {
    const names = [...read(path).matchAll(/export (?:async )?function (\w+Command)\(\)/g)].map(
      ([, name = ""]) => name,
    );
    return importersOf(path)
      .filter((other) => other !== "main.ts" && !isOfNoun(path, other))
      .filter((other) => names.some((name) => new RegExp(`\\b${name}\\b`).test(read(other))))
      .map((other) => [path, other]);
  });
  expect(strays).toEqual([]);
  expect(files.filter((path) => importersOf(path).length === 0)).toEqual([]);
});

it("adds a subcommand in the folder of its noun, and nowhere else", () => {
  const files = declaring(/export function add[A-Z]\w*\(\w+: Command\)/);
  expect(files.length).toBeGreaterThan(3);
  const adders = files.map((path) => {
    const [, name] = /export function (add[A-Z]\w*)\(\w+: Command\)/.exec(read(path)) ?? [];
    return [path, importersOf(path).filter((other) => read(other).includes(`${name}(`))] as const;
  });
  const ofNoun = (path: string) => [join(dirname(path), `${basename(dirname(path))}.ts`)];
  expect(adders).toEqual(files.map((path) => [path, ofNoun(path)]));
});
