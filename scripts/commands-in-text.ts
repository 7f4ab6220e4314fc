// Commands of holdfast that a page of the documentation names, and whether they exist as they are written.

import { buildProgram } from "@holdfast/cli/main";

/** What is between backticks, and the lines of blocks. */
function codeIn(text: string): string[] {
  const blocks = [...text.matchAll(/^```\w*\n([\s\S]*?)^```$/gm)].flatMap(([, block = ""]) => block.split("\n"));
  const inline = [...text.replace(/^```[\s\S]*?^```$/gm, "").matchAll(/`([^`]+)`/g)].map(([, code = ""]) => code);
  return [...blocks, ...inline].map((code) =>
    code
      .replace(/ +# .*$/, "")
      .replaceAll(/\s+/g, " ")
      .trim(),
  );
}

export const commandsIn = (text: string) =>
  codeIn(text).flatMap((code) => /^(?:sudo |npx )*(holdfast .+)$/.exec(code)?.[1] ?? []);

const program = await buildProgram(() => true, { json: false });

/** What is wrong with a command as it is written; undefined: nothing. */
export function problemOf(text: string): string | undefined {
  let command = program;
  const [, ...words] = text.split(" ");
  while (words[0] !== undefined) {
    const next = command.commands.find((one) => one.name() === words[0] || one.aliases().includes(words[0] ?? ""));
    if (!next) break;
    command = next;
    words.shift();
  }
  const given: string[] = [];
  const missing = new Set(command.options.filter(({ mandatory }) => mandatory).map(({ long }) => long));
  while (words[0] !== undefined) {
    const word = words.shift() as string;
    if (!word.startsWith("-")) given.push(word);
    else {
      const option = command.options.find(({ long, short }) => long === word || short === word);
      if (!option) return `${command.name()} has no option ${word}`;
      missing.delete(option.long);
      if (option.required && words.shift() === undefined) return `${word} needs a value`;
    }
  }
  if (command === program) return given.length > 0 ? `there is no command ${given[0]}` : undefined;
  if (command.commands.length > 0) return `${command.name()} needs one of its own commands`;
  if (missing.size > 0) return `${command.name()} needs ${[...missing].join(" and ")}`;
  const needed = command.registeredArguments.filter(({ required }) => required).length;
  return given.length < needed ? `${command.name()} needs ${needed} arguments` : undefined;
}
