// Finds task types that are named outside their folder. Whoever asks for a task may name its type;
// whoever handles tasks may not, because every new type would then have to be added there.

type Source = { path: string; text: string };

const code = /[.](ts|tsx|mjs|js|sql|json)$/;
const neverCode = /(^|\/)test\/|[.]test[.]tsx?$|^(bench|chaos|docs|testkit)\/|^package-lock[.]json$/;
const asksForTasks = /\benqueue\w*\(|\bcreateTask\b|\btasks\.(?:run|start)\(|\brunTask\(/;
/** What a person did, as the audit calls it, may have the name of the task that it led to. */
const auditAction = /\baction: .*$/gm;

/** One line for each file that must not name what it names. */
export function hardCodedTypes(sources: readonly Source[], types: readonly string[]): string[] {
  return sources
    .filter(({ path }) => code.test(path) && !neverCode.test(path))
    .flatMap((source) => {
      const named = types.filter((type) => !source.path.startsWith(`tasks/${type}/`) && names(source.text, type));
      if (named.length === 0 || isProducer(source, named)) return [];
      return [`${source.path} names ${named.join(", ")}`];
    });
}

/** As a literal of its own; a sentence may mention it. */
function names(text: string, type: string): boolean {
  const code = text.replace(auditAction, "");
  return [`"${type}"`, `'${type}'`, `\`${type}\``].some((literal) => code.includes(literal));
}

/** It asks for the tasks of one family. A list of types reaches across families. */
function isProducer({ path, text }: Source, named: readonly string[]): boolean {
  const families = new Set(named.map((type) => type.split(".")[0]));
  return !path.startsWith("tasks/") && asksForTasks.test(text) && families.size === 1;
}
