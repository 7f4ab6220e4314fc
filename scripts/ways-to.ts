// The ways by which modules come to load another one at run time. Imports of types alone are gone by then.

import type { IModule } from "dependency-cruiser";

/** One way for each module that imports what nobody may reach, the shortest there is. */
export function waysTo(
  modules: readonly Pick<IModule, "source" | "dependencies">[],
  { from, not, to }: { from: RegExp; not: RegExp; to: RegExp },
): { ways: string[][]; visited: number } {
  const imports = new Map(modules.map(({ source, dependencies }) => [source, dependencies]));
  const found = new Map<string, string[]>();
  const begin = [...imports.keys()].filter((source) => from.test(source) && !not.test(source));
  for (const source of begin) found.set(source, [source]);
  const ways: string[][] = [];
  // A map gives what is added meanwhile, too.
  for (const [source, way] of found) {
    for (const { resolved, dependencyTypes } of imports.get(source) ?? []) {
      if (dependencyTypes.includes("type-only")) continue;
      if (to.test(resolved)) ways.push([...way, resolved]);
      else if (!found.has(resolved)) found.set(resolved, [...way, resolved]);
    }
  }
  return { ways, visited: found.size };
}
