// A page is a component in its feature and a route in router.tsx: nothing else names it, and the main menu lists routes.

import { readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";

const root = fileURLToPath(new URL(".", import.meta.url));
const read = (path: string) => readFileSync(join(root, path), "utf8");
const sources = readdirSync(root, { recursive: true, encoding: "utf8" }).filter(
  (path) => /\.tsx?$/.test(path) && !path.includes(".test."),
);

const pages = [...read("router.tsx").matchAll(/import\("\.\/(features\/[^"]+)"\)/g)].map(([, file = ""]) => file);
const imports = (path: string, file: string) =>
  [...read(path).matchAll(/(?:from|import) ?\(? ?"(\.[^"]+)"/g)].some(
    ([, target = ""]) => join(dirname(path), target) === file,
  );

it("imports a page in the router, and nowhere else", () => {
  expect(pages.length).toBeGreaterThan(10);
  const importers = pages.map((file) => [file, sources.filter((path) => imports(path, file))]);
  expect(importers).toEqual(pages.map((file) => [file, ["router.tsx"]]));
});

it("fills the main menu from the routes", () => {
  const menu = [...read("router.tsx").matchAll(/menu: \{ label: "([^"]+)"/g)].map(([, label]) => label);
  expect(menu).toEqual([
    "Overview",
    "Nodes",
    "Hosts",
    "Leases",
    "Jenkins",
    "Allocations",
    "My terminals",
    "Workflows",
    "Runs",
    "Agents",
    "Executions",
    "Secrets",
    "Audit",
    "Organization",
  ]);
  const navigation = read("features/shell/Navigation.tsx");
  for (const label of menu.slice(1)) expect(navigation).not.toContain(`"${label}"`);
});
