// Every reason and signal has a runbook, with all its sections, and nothing in it can be typed in vain: commands, settings
// and metrics exist, and links lead to pages.

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { generalRunbooks, reasonCodes, runbookOf } from "@holdfast/contracts/reasons/catalogue";
import { describe, expect, it } from "vitest";
import { commandsIn, problemOf } from "./commands-in-text.ts";
import { FOLDER, runbookPages, sections } from "./runbook-pages.ts";

const root = fileURLToPath(new URL("..", import.meta.url));
const names = readdirSync(join(root, FOLDER)).map((file) => file.replace(/\.md$/, ""));
const textOf = (name: string) => readFileSync(join(root, FOLDER, `${name}.md`), "utf8");

describe("the check of commands", () => {
  it.for([
    ["holdfast node explain <node>", undefined],
    ["holdfast --version", undefined],
    ["holdfast node fence <node>", undefined],
    ["holdfast node token create --node <node>", undefined],
    ["holdfast nodes", "there is no command nodes"],
    ["holdfast node", "node needs one of its own commands"],
    ["holdfast node explain", "explain needs 1 arguments"],
    ["holdfast node show <node> --all", "show has no option --all"],
    ["holdfast audit list --correlation", "--correlation needs a value"],
    ["holdfast token create", "create needs --name"],
  ] as const)("finds what is wrong: %s", ([text, problem]) => {
    expect(problemOf(text)).toBe(problem);
  });

  it("reads commands from blocks and from sentences, without comments", () => {
    const text =
      "Run `holdfast status`, not `holdfast-agent`.\n```\nsudo holdfast agent diagnose   # on the host\n```\n";
    expect(commandsIn(text)).toEqual(["holdfast agent diagnose", "holdfast status"]);
  });
});

describe("the runbooks", () => {
  it("OPS-04 are one page for every reason and signal, and the general ones", () => {
    expect(names.toSorted()).toEqual([...reasonCodes, ...generalRunbooks, "README"].toSorted());
    expect(reasonCodes.map(runbookOf)).toEqual(reasonCodes.map((code) => `/runbooks/${code}`));
    expect(runbookOf("moon_phase")).toBeNull();
  });

  it.for(reasonCodes)("OPS-04 have every section, in the same order, none of them empty: %s", (code) => {
    const [, ...parts] = textOf(code).split(/^## /m);
    const [headings, bodies] = [parts.map((part) => part.split("\n", 1)[0]), parts.map(contentOf)];
    expect(headings).toEqual([...sections]);
    expect(bodies.filter((body) => !/\w/.test(body))).toEqual([]);
  });

  it("OPS-04 begin with what the catalogue and the classifier know", () => {
    const outdated = Object.entries(runbookPages(root)).filter(
      ([path, text]) => readFileSync(join(root, path), "utf8") !== text,
    );
    expect(outdated.map(([path]) => path)).toEqual([]);
  });

  it.for(names)("OPS-04 have only commands that exist: %s", (name) => {
    const wrong = commandsIn(textOf(name)).flatMap((text) => problemOf(text) ?? []);
    expect(wrong).toEqual([]);
  });

  it("OPS-04 have commands at all", () => {
    expect(names.flatMap((name) => commandsIn(textOf(name))).length).toBeGreaterThan(100);
  });

  it("OPS-04 name only settings and metrics that exist", () => {
    const settings = readFileSync(join(root, "docs/reference/settings.md"), "utf8");
    const sources = ["service/src", "control-plane/src", "gateway/src", "node-agent/src"].flatMap((folder) =>
      readdirSync(join(root, folder), { recursive: true, encoding: "utf8" })
        .filter((path) => path.endsWith(".ts") && !path.endsWith(".test.ts"))
        .map((path) => readFileSync(join(root, folder, path), "utf8")),
    );
    const product = sources.join("\n");
    const all = names.map(textOf).join("\n");
    const named = (pattern: RegExp) => [...new Set(all.match(pattern))];
    const unknownSettings = named(/\bHOLDFAST_[A-Z0-9_]+/g).filter((one) => !settings.includes(`\`${one}\``));
    const unknownMetrics = named(/\bholdfast_[a-z_]+/g).filter((one) => !product.includes(`"${one}"`));
    expect({ unknownSettings, unknownMetrics }).toEqual({ unknownSettings: [], unknownMetrics: [] });
  });

  it("OPS-04 are in the image that the processes run from", () => {
    const read = (path: string) => readFileSync(join(root, path), "utf8").split("\n");
    expect(read("deploy/Dockerfile")).toContain("COPY . .");
    const left = read("deploy/Dockerfile.dockerignore").filter((one) =>
      /^(docs|\*\*?$|\*\*\/docs|.*\.md)/.test(one),
    );
    expect(left).toEqual([]);
  });

  it("OPS-04 link to pages that exist, and to nothing that the api does not serve", () => {
    const wrong = names.flatMap((name) =>
      [...textOf(name).matchAll(/\]\(([^)]+)\)/g)]
        .map(([, target = ""]) => target)
        .filter((target) => !target.startsWith("https://"))
        .filter((target) => !isThere(target))
        .map((target) => `${name}: ${target}`),
    );
    expect(wrong).toEqual([]);
  });
});

/** `#a-section`: of a heading "A section". */
function isThere(target: string): boolean {
  const [, name = "", section] = /^([\w-]+)\.md(?:#([\w-]+))?$/.exec(target) ?? [];
  if (!names.includes(name)) return false;
  const headings = [...textOf(name).matchAll(/^## (.+)$/gm)].map(([, heading = ""]) => heading.toLowerCase());
  return section === undefined || headings.includes(section.replaceAll("-", " "));
}

function contentOf(part: string): string {
  return part.slice(part.indexOf("\n")).trim();
}
