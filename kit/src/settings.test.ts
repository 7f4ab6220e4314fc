import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  describeSettings,
  integer,
  kinds,
  oneOf,
  optional,
  readSettings,
  type Setting,
  type SettingKind,
  secretValues,
  setting,
  UsageError,
  unknownSettings,
} from "./settings.ts";

/** The message that a person gets to read. */
function complaint(read: () => unknown): string {
  try {
    read();
  } catch (error) {
    if (error instanceof UsageError) return error.message;
    throw error;
  }
  throw new Error("nothing was complained about");
}

const key = Buffer.alloc(32, 0xab).toString("base64");

const examples: Record<string, { kind: SettingKind<unknown>; valid: [string, unknown][]; invalid: string[] }> = {
  port: {
    kind: kinds.port,
    valid: [
      ["0", 0],
      ["3001", 3001],
      ["65535", 65_535],
    ],
    invalid: ["65536", "-1", "3001.5", "3e3", "0x50", " 80", "80 ", "eighty", "1".repeat(40)],
  },
  integer: {
    kind: integer({ min: -5, max: 10 }),
    valid: [
      ["-5", -5],
      ["0", 0],
      ["10", 10],
    ],
    invalid: ["-6", "11", "1.0", "+1", "NaN", "Infinity", "--1"],
  },
  oneOf: { kind: oneOf("yes", "no"), valid: [["no", "no"]], invalid: ["No", "yes ", "true", "yesno"] },
  text: { kind: kinds.text, valid: [[" as it is ", " as it is "]], invalid: [] },
  path: {
    kind: kinds.path,
    valid: [["/var/lib", "/var/lib"]],
    invalid: ["var/lib", "~/data", "./data", " /data"],
  },
  httpUrl: {
    kind: kinds.httpUrl,
    valid: [
      ["https://holdfast.example.com", "https://holdfast.example.com"],
      ["HTTP://Holdfast.Example.com:8080/", "http://holdfast.example.com:8080"],
      ["http://[::1]:3001", "http://[::1]:3001"],
    ],
    invalid: [
      "holdfast.example.com",
      "ftp://holdfast.example.com",
      "https://holdfast.example.com/app",
      "https://holdfast.example.com/?a=1",
      "https://holdfast.example.com/#a",
      "https://me@holdfast.example.com",
      "https://me:secret@holdfast.example.com",
      "https://",
    ],
  },
  postgresUrl: {
    kind: kinds.postgresUrl,
    valid: ["postgres://me:pw@db:5432/holdfast", "postgresql://db/holdfast"].map((url) => [url, url]),
    invalid: ["mysql://db/holdfast", "postgres://", "postgres:db", "db/holdfast", "postgres://db:port/x"],
  },
  key256: {
    kind: kinds.key256,
    valid: [
      [key, Buffer.alloc(32, 0xab)],
      [Buffer.alloc(32, 0xff).toString("base64url"), Buffer.alloc(32, 0xff)],
    ],
    invalid: [key.slice(4), `${key}AAAA`, `${key.slice(0, 20)}\n${key.slice(20)}`, "not a key", `=${key}`],
  },
  addressList: {
    kind: kinds.addressList,
    valid: [
      ["127.0.0.1", ["127.0.0.1"]],
      ["10.0.0.0/8, fd00::/8,::1", ["10.0.0.0/8", "fd00::/8", "::1"]],
    ],
    invalid: [
      "10.0.0.0/33",
      "fd00::/129",
      "10.0.0.1/",
      "10.0.0.1,",
      "10.0.0",
      "300.1.1.1",
      "cafe",
      "proxy.example.com",
      "10.0.0.0/8/8",
      "10.0.0.0/-1",
      ".",
    ],
  },
};

describe("a kind", () => {
  it.for(Object.entries(examples))("OPS-03 takes what is allowed: %s", ([, { kind, valid }]) => {
    expect.assertions(valid.length);
    for (const [text, value] of valid) expect(kind.parse(text), text).toEqual(value);
  });

  const selective = Object.entries(examples).filter(([, { invalid }]) => invalid.length > 0);
  it.for(selective)("OPS-03 refuses everything else, and says what is allowed: %s", ([, { kind, invalid }]) => {
    const declared = { it: optional(kind, { env: "HOLDFAST_IT", help: "What it is for." }) };
    for (const text of invalid) {
      const message = complaint(() => readSettings(declared, { HOLDFAST_IT: text }));
      expect(message).toBe(`HOLDFAST_IT is ${JSON.stringify(text)}. Allowed: ${kind.allowed}. What it is for.`);
    }
  });
});

describe("numbers", () => {
  it("OPS-03 are read as written or refused, whatever the range", () => {
    const bound = fc.integer({ min: -1_000_000, max: 1_000_000 });
    fc.assert(
      fc.property(bound, bound, fc.oneof(bound.map(String), fc.string()), (a, b, text) => {
        const [min, max] = [Math.min(a, b), Math.max(a, b)];
        const value = integer({ min, max }).parse(text);
        if (/^-?\d{1,15}$/.test(text) && Number(text) >= min && Number(text) <= max) {
          expect(value).toBe(Number(text));
        } else expect(value).toBeUndefined();
      }),
    );
  });
});

describe("keys", () => {
  it("OPS-03 are exactly 32 bytes, in either base64", () => {
    fc.assert(
      fc.property(
        fc.uint8Array({ maxLength: 40 }),
        fc.constantFrom("base64" as const, "base64url" as const),
        (bytes, form) => {
          const parsed = kinds.key256.parse(Buffer.from(bytes).toString(form));
          if (bytes.length === 32) expect(parsed).toEqual(Buffer.from(bytes));
          else expect(parsed).toBeUndefined();
        },
      ),
    );
  });
});

const port = setting(kinds.port, {
  env: "HOLDFAST_PORT",
  aliases: ["OLD_PORT", "OLDER_PORT", "OLDEST_PORT"],
  default: 3002,
  help: "Where to listen.",
});
const portFrom = (env: Record<string, string>) => readSettings({ port }, env).port;

describe("one setting under several names", () => {
  it("OPS-03 takes an alias where the canonical name is unset", () => {
    expect(portFrom({ OLDEST_PORT: "1" })).toBe(1);
  });

  it("OPS-03 lets the canonical name win over an alias, even over aliases that disagree", () => {
    expect(portFrom({ HOLDFAST_PORT: "1", OLD_PORT: "2", OLDER_PORT: "3" })).toBe(1);
    expect(portFrom({ HOLDFAST_PORT: "1", OLD_PORT: "not a port" })).toBe(1);
  });

  it("OPS-03 does not fall back to an alias when the canonical value is wrong", () => {
    expect(complaint(() => portFrom({ HOLDFAST_PORT: "x", OLD_PORT: "2" }))).toContain('HOLDFAST_PORT is "x"');
  });

  it("OPS-03 accepts aliases that agree", () => {
    expect(portFrom({ OLD_PORT: "7", OLDER_PORT: "7", OLDEST_PORT: "7" })).toBe(7);
  });

  it.for([
    [{ OLD_PORT: "1", OLDER_PORT: "2" }, "OLD_PORT and OLDER_PORT"],
    [{ OLD_PORT: "1", OLDEST_PORT: "2" }, "OLD_PORT and OLDEST_PORT"],
    [{ OLDER_PORT: "1", OLDEST_PORT: "2" }, "OLDER_PORT and OLDEST_PORT"],
    [{ OLD_PORT: "1", OLDER_PORT: "1", OLDEST_PORT: "2" }, "OLD_PORT and OLDEST_PORT"],
  ] as const)("OPS-03 stops at aliases that disagree: %o", ([env, named]) => {
    const message = complaint(() => portFrom(env));
    expect(message).toContain(`${named} are both names of HOLDFAST_PORT and disagree`);
    expect(message).toContain("set HOLDFAST_PORT, or only one of them");
  });

  it("OPS-03 counts an empty value as unset, under every name", () => {
    expect(portFrom({ HOLDFAST_PORT: "", OLD_PORT: "", OLDER_PORT: "" })).toBe(3002);
    expect(portFrom({ HOLDFAST_PORT: "", OLD_PORT: "5", OLDER_PORT: "" })).toBe(5);
  });

  it("OPS-03 names the alias that carries a wrong value, because that is where to fix it", () => {
    expect(complaint(() => portFrom({ OLDER_PORT: "x" }))).toMatch(/^OLDER_PORT is "x"/);
  });
});

describe("a complaint", () => {
  const secretKey = optional(kinds.key256, {
    env: "HOLDFAST_KEY",
    aliases: ["OLD_KEY", "OLDER_KEY"],
    secret: true,
    help: "The key.",
  });

  it("SEC-02 never repeats a secret value, wrong or disagreeing", () => {
    const secret = fc.string({ minLength: 6, maxLength: 30, unit: fc.constantFrom(..."€ÅØß§") });
    fc.assert(
      fc.property(secret, secret, (one, other) => {
        const wrong = complaint(() => readSettings({ key: secretKey }, { HOLDFAST_KEY: one }));
        expect(wrong).not.toContain(one);
        expect(wrong).toContain("HOLDFAST_KEY is (secret, not shown)");
        const both = { OLD_KEY: one, OLDER_KEY: `${other}!` };
        const disagreeing = complaint(() => readSettings({ key: secretKey }, both));
        expect(disagreeing).not.toContain(one);
        expect(disagreeing).not.toContain(other);
      }),
    );
  });

  it("OPS-03 names all problems at once, each on a line", () => {
    const declared = {
      port,
      key: secretKey,
      path: optional(kinds.path, { env: "HOLDFAST_PATH", help: "A place." }),
      fine: setting(kinds.text, { env: "HOLDFAST_FINE", default: "", help: "Anything." }),
    };
    const env = { OLD_PORT: "1", OLDER_PORT: "2", HOLDFAST_KEY: "k", HOLDFAST_PATH: "here", HOLDFAST_FINE: "x" };
    const lines = complaint(() => readSettings(declared, env)).split("\n");
    expect(lines.map((line) => line.split(" ")[0])).toEqual(["OLD_PORT", "HOLDFAST_KEY", "HOLDFAST_PATH"]);
  });
});

describe("unknown names", () => {
  const known: Setting[] = [port, optional(kinds.text, { env: "HOLDFAST_PUBLIC_URL", help: "The address." })];

  it("OPS-03 are told with the nearest real one", () => {
    const env = { HOLDFAST_PROT: "1", HOLDFAST_PUBLICURL: "x", HOLDFAST_PORT: "1", OLD_PORT: "1", PATH: "/bin" };
    expect(unknownSettings(known, env)).toEqual([
      { name: "HOLDFAST_PROT", nearest: "HOLDFAST_PORT" },
      { name: "HOLDFAST_PUBLICURL", nearest: "HOLDFAST_PUBLIC_URL" },
    ]);
  });

  it("OPS-03 get no proposal where nothing is near", () => {
    expect(unknownSettings(known, { HOLDFAST_SOMETHING_ELSE: "1" })).toEqual([
      { name: "HOLDFAST_SOMETHING_ELSE", nearest: undefined },
    ]);
  });

  it("OPS-03 find the real one after any single slip of the keyboard", () => {
    const name = "HOLDFAST_PUBLIC_URL";
    const letter = fc.constantFrom(..."ABCXYZ_19");
    // The prefix is what makes a name look like ours, so the slip is behind it.
    const at = fc.integer({ min: "HOLDFAST_".length, max: name.length - 1 });
    const slips = fc.tuple(at, letter, fc.constantFrom("insert", "replace", "leave out"));
    fc.assert(
      fc.property(slips, ([position, typed, slip]) => {
        const rest = name.slice(slip === "insert" ? position : position + 1);
        const mistyped = name.slice(0, position) + (slip === "leave out" ? "" : typed) + rest;
        fc.pre(mistyped !== name);
        expect(unknownSettings(known, { [mistyped]: "x" })).toEqual([{ name: mistyped, nearest: name }]);
      }),
    );
  });
});

describe("settings that are shown", () => {
  const declared = {
    port: setting(kinds.port, { env: "HOLDFAST_A_PORT", default: 1, help: "A port." }),
    proxies: optional(kinds.addressList, { env: "HOLDFAST_PROXIES", help: "Addresses." }),
    kek: optional(kinds.key256, { env: "HOLDFAST_KEY", secret: true, help: "A key." }),
    url: optional(kinds.postgresUrl, { env: "HOLDFAST_URL", secret: true, help: "A database." }),
  };
  const key = Buffer.alloc(32, 5).toString("base64");
  const values = readSettings(declared, {
    HOLDFAST_KEY: key,
    HOLDFAST_URL: "postgres://me:pass%2Fword@db/x",
    HOLDFAST_PROXIES: "10.0.0.1,::1",
  });

  it("AGENT-10 say of a secret only whether it is set", () => {
    expect(describeSettings(declared, values)).toEqual({
      ...{ HOLDFAST_A_PORT: "1", HOLDFAST_PROXIES: "10.0.0.1,::1", HOLDFAST_KEY: "[set]", HOLDFAST_URL: "[set]" },
    });
    expect(describeSettings(declared, readSettings(declared, {}))).toMatchObject({ HOLDFAST_KEY: null });
  });

  it("AGENT-10 name every form of a secret that must not be seen", () => {
    expect(secretValues(declared, values)).toEqual(
      expect.arrayContaining([key, Buffer.alloc(32, 5).toString("hex"), "pass%2Fword", "pass/word"]),
    );
    expect(secretValues(declared, readSettings(declared, {}))).toEqual([]);
  });
});
