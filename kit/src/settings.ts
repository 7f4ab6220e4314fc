// Declares and reads the settings of a process. A declaration is the only place that defines a
// setting's name, aliases, default, meaning and what a valid value is; the reference page is
// generated from it. An invalid value is reported with what is allowed, and the process exits with 2.

import { isIP } from "node:net";

export type SettingKind<T> = {
  /** What a valid value looks like, for people: "a port from 0 to 65535". */
  allowed: string;
  /** Undefined means the text is not valid. */
  parse(text: string): T | undefined;
};

export type Setting<T = unknown> = {
  env: `HOLDFAST_${string}`;
  aliases: readonly string[];
  help: string;
  secret: boolean;
  kind: SettingKind<T>;
  default: T;
  /** How the default is described when it depends on the machine. */
  defaultText?: string;
};

type SettingOptions = {
  env: `HOLDFAST_${string}`;
  aliases?: readonly string[];
  help: string;
  secret?: boolean;
  defaultText?: string;
};

export type Settings = Record<string, Setting>;
export type Values<S extends Settings> = { [K in keyof S]: S[K] extends Setting<infer T> ? T : never };
export type Environment = Record<string, string | undefined>;

/** A person's mistake in the configuration or the command: the process stops with exit code 2. */
export class UsageError extends Error {
  override name = "UsageError";
}

export const kinds = {
  port: {
    allowed: "a port from 0 to 65535; 0 chooses a free one",
    parse: (text) => wholeNumber(text, { min: 0, max: 65_535 }),
  } satisfies SettingKind<number>,
  text: { allowed: "text", parse: (text) => text } satisfies SettingKind<string>,
  path: {
    allowed: "an absolute path",
    parse: (text) => (text.startsWith("/") ? text : undefined),
  } satisfies SettingKind<string>,
  httpUrl: {
    allowed: "an http:// or https:// URL without a path, such as https://holdfast.example.com",
    parse: (text) => originOf(text),
  } satisfies SettingKind<string>,
  postgresUrl: {
    allowed: "a URL such as postgres://user@host:5432/database, including the password if there is one",
    parse: (text) => (/^postgres(ql)?:\/\/./.test(text) && URL.canParse(text) ? text : undefined),
  } satisfies SettingKind<string>,
  key256: {
    allowed: "32 random bytes in base64, as from `openssl rand -base64 32`",
    parse: (text) => {
      const key = Buffer.from(text, "base64");
      return key.length === 32 && /^[A-Za-z0-9+/_-]+=*$/.test(text) ? key : undefined;
    },
  } satisfies SettingKind<Buffer>,
  addressList: {
    allowed: "addresses or CIDR ranges separated by commas, such as 10.0.0.0/8,127.0.0.1",
    parse: (text) => {
      const list = text.split(",").map((part) => part.trim());
      return list.every(isAddressOrRange) ? list : undefined;
    },
  } satisfies SettingKind<string[]>,
};

export function integer(range: { min: number; max: number }): SettingKind<number> {
  return {
    allowed: `a whole number from ${range.min} to ${range.max}`,
    parse: (text) => wholeNumber(text, range),
  };
}

export function oneOf<const T extends string>(...choices: T[]): SettingKind<T> {
  return {
    allowed: `one of ${choices.join(", ")}`,
    parse: (text) => choices.find((choice) => choice === text),
  };
}

/** A setting that always has a value. */
export function setting<T>(kind: SettingKind<T>, options: SettingOptions & { default: T }): Setting<T> {
  return { aliases: [], secret: false, ...options, kind };
}

/** A setting that may be left out. */
export function optional<T>(kind: SettingKind<T>, options: SettingOptions): Setting<T | undefined> {
  return { aliases: [], secret: false, ...options, kind, default: undefined };
}

/** The values of secret settings, in the form in which they were given. Of a URL also the password alone. */
export function secretValues<S extends Settings>(declared: S, values: Values<S>): string[] {
  return Object.entries(declared).flatMap(([name, { secret }]) => {
    const value = (values as Record<string, unknown>)[name];
    if (!secret) return [];
    if (Buffer.isBuffer(value))
      return [value.toString("base64"), value.toString("base64url"), value.toString("hex")];
    if (typeof value !== "string") return [];
    const password = URL.canParse(value) ? new URL(value).password : "";
    return password === "" ? [value] : [value, password, decodeURIComponent(password)];
  });
}

/** What a process runs with, by the names of the settings; of a secret only whether it is set. */
export function describeSettings<S extends Settings>(
  declared: S,
  values: Values<S>,
): Record<string, string | null> {
  return Object.fromEntries(
    Object.entries(declared).map(([name, { env, secret }]) => {
      const value = (values as Record<string, unknown>)[name];
      if (value === undefined) return [env, null];
      return [env, secret ? "[set]" : Array.isArray(value) ? value.join(",") : String(value)];
    }),
  );
}

/** Reads all settings, or throws one UsageError that names every problem. An empty value counts as unset. */
export function readSettings<S extends Settings>(declared: S, env: Environment): Values<S> {
  const problems: string[] = [];
  const values: Record<string, unknown> = {};
  for (const [name, declaration] of Object.entries(declared)) {
    const found = findValue(declaration, env, problems);
    if (found === undefined) {
      values[name] = declaration.default;
      continue;
    }
    const value = declaration.kind.parse(found.text);
    if (value === undefined) {
      const shown = declaration.secret ? "(secret, not shown)" : JSON.stringify(found.text);
      problems.push(`${found.name} is ${shown}. Allowed: ${declaration.kind.allowed}. ${declaration.help}`);
    }
    values[name] = value;
  }
  if (problems.length > 0) throw new UsageError(problems.join("\n"));
  return values as Values<S>;
}

/** Names that look like settings but are not, with the nearest real name: most are typing mistakes. */
export function unknownSettings(
  known: readonly Setting[],
  env: Environment,
): { name: string; nearest: string | undefined }[] {
  const names = new Set<string>(known.map((one) => one.env));
  return Object.keys(env)
    .filter((name) => name.startsWith("HOLDFAST_") && !names.has(name))
    .map((name) => ({ name, nearest: nearestName(name, [...names]) }));
}

function findValue(
  declaration: Setting,
  env: Environment,
  problems: string[],
): { name: string; text: string } | undefined {
  const present = [declaration.env, ...declaration.aliases]
    .map((name) => ({ name, text: env[name] ?? "" }))
    .filter((one) => one.text !== "");
  const [first, ...others] = present;
  if (first === undefined || first.name === declaration.env) return first;
  const disagreeing = others.find((other) => other.text !== first.text);
  if (disagreeing !== undefined) {
    problems.push(
      `${first.name} and ${disagreeing.name} are both names of ${declaration.env} and disagree; ` +
        `set ${declaration.env}, or only one of them.`,
    );
  }
  return first;
}

function wholeNumber(text: string, range: { min: number; max: number }): number | undefined {
  if (!/^-?\d{1,15}$/.test(text)) return undefined;
  const number = Number(text);
  return number >= range.min && number <= range.max ? number : undefined;
}

function isAddressOrRange(text: string): boolean {
  const [address = "", bits, ...rest] = text.split("/");
  const version = isIP(address);
  if (version === 0 || rest.length > 0) return false;
  return bits === undefined || wholeNumber(bits, { min: 0, max: version === 4 ? 32 : 128 }) !== undefined;
}

function originOf(text: string): string | undefined {
  if (!URL.canParse(text)) return undefined;
  const url = new URL(text);
  const plain = url.pathname === "/" && !url.search && !url.hash && !url.username && !url.password;
  return plain && (url.protocol === "http:" || url.protocol === "https:") ? url.origin : undefined;
}

function nearestName(name: string, candidates: string[]): string | undefined {
  const ranked = candidates
    .map((candidate) => ({ candidate, distance: editDistance(name, candidate) }))
    .sort((a, b) => a.distance - b.distance);
  const best = ranked[0];
  return best && best.distance <= 4 ? best.candidate : undefined;
}

function editDistance(a: string, b: string): number {
  let previous = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i += 1) {
    const row = [i];
    for (let j = 1; j <= b.length; j += 1) {
      const substitute = (previous[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      row.push(Math.min(substitute, (previous[j] ?? 0) + 1, (row[j - 1] ?? 0) + 1));
    }
    previous = row;
  }
  return previous[b.length] ?? 0;
}
