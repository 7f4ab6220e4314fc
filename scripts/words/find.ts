// Finds banned words in one file. Pure: text and lists in, findings out.

import ts from "typescript";

export type Finding = { path: string; line: number; found: string; instead: string };
type Banned = Record<string, string>;

/** What begins a line inside a comment or quote, or joins two halves of a string: no part of the sentence. */
const lineBreak = / *["'`]? *\+?[ \t]*\n[ \t]*(?:\/\/+|\/?\*+|#+|--|>)?[ \t]*["'`]?/g;

export function findPhrases(path: string, text: string, banned: Banned): Finding[] {
  // Each break becomes one space, padded with characters that no phrase has, so that positions stay as they are.
  const joined = text.replace(lineBreak, (whole) => ` ${"\u0000".repeat(whole.length - 1)}`);
  return Object.entries(banned).flatMap(([phrase, instead]) =>
    [...joined.matchAll(phrasePattern(phrase))].map(({ index, 0: found }) => ({
      path,
      line: lineAt(text, index),
      found: found.replaceAll("\u0000", ""),
      instead,
    })),
  );
}

function phrasePattern(phrase: string): RegExp {
  const words = phrase.split(" ").map((word) => word.replace(/[^\w]/g, "\\$&"));
  return new RegExp(`(?<!\\w)${words.join(" \\u0000*")}(?!\\w)`, "gi");
}

export function findNames(path: string, text: string, banned: Banned): Finding[] {
  const fileName = path.split("/").at(-1) ?? path;
  return [
    ...partsOf(fileName).flatMap((part) => judge(part, fileName, 1)),
    ...(mayName(text, banned) ? identifiersOf(path, text).flatMap(judgeIdentifier) : []),
  ];

  function judgeIdentifier({ name, line }: { name: string; line: number }): Finding[] {
    return partsOf(name).flatMap((part) => judge(part, name, line));
  }

  function judge(part: string, found: string, line: number): Finding[] {
    const instead = Object.hasOwn(banned, part) ? banned[part] : undefined;
    return instead === undefined ? [] : [{ path, line, found, instead }];
  }
}

/** `wasTold`, `WAS_TOLD` and `was-told.ts` have the parts `was` and `told`. */
function partsOf(name: string): string[] {
  return name
    .replace(/([a-z0-9])([A-Z])/g, "$1 $2")
    .toLowerCase()
    .split(/[^a-z]+/);
}

/** Parsing takes most of the time, and nearly every file has none of the words. */
function mayName(text: string, banned: Banned): boolean {
  const spellings = Object.keys(banned).flatMap((word) => [
    word,
    word.charAt(0).toUpperCase() + word.slice(1),
    word.toUpperCase(),
  ]);
  return spellings.length > 0 && new RegExp(`(${spellings.join("|")})(?![a-z])`).test(text);
}

function identifiersOf(path: string, text: string): { name: string; line: number }[] {
  if (!/\.(ts|tsx|mjs)$/.test(path)) return [];
  const file = ts.createSourceFile(path, text, ts.ScriptTarget.Latest, true);
  const found: { name: string; line: number }[] = [];
  const visit = (node: ts.Node): void => {
    if (ts.isIdentifier(node) || ts.isPrivateIdentifier(node))
      found.push({ name: node.text, line: file.getLineAndCharacterOfPosition(node.getStart()).line + 1 });
    ts.forEachChild(node, visit);
  };
  visit(file);
  return found;
}

function lineAt(text: string, index: number): number {
  return text.slice(0, index).split("\n").length;
}
