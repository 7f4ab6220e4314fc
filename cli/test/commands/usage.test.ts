// How commands are called, and how they end: 0 done, 1 refused, 2 wrong usage, 3 unreachable.

import { execFile } from "node:child_process";
import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { aPerson, command } from "../support/command.ts";

const person = aPerson();
const nowhere = { HOLDFAST_API_URL: "http://127.0.0.1:2", HOLDFAST_TOKEN: "hft_none" };

/** The commands that a help page lists. */
async function subcommands(path: string[]): Promise<string[]> {
  const { code, stdout, stderr } = await person.holdfast([...path, "--help"]);
  expect({ code, stderr }, path.join(" ")).toEqual({ code: 0, stderr: "" });
  expect(stdout).toMatch(new RegExp(`^Usage: holdfast ${path.join(" ")}`.trim()));
  const [, listed = ""] = stdout.split("\nCommands:\n");
  return [...listed.matchAll(/^ {2}([\w-]+)/gm)].flatMap(([, name]) => (name && name !== "help" ? [name] : []));
}

/** All at once would be dozens of processes, and nothing else on the machine would get on. */
async function aFewAtATime<T>(all: readonly T[], work: (one: T) => Promise<unknown>): Promise<void> {
  const left = [...all];
  const hand = async () => {
    for (let one = left.shift(); one !== undefined; one = left.shift()) await work(one);
  };
  await Promise.all(Array.from({ length: 4 }, hand));
}

describe("output that nobody reads to its end", () => {
  /** Runs it 25 times, and collects the status of `holdfast` and all that it said beside its output. */
  async function piped(line: string): Promise<{ statuses: Set<string>; complaints: string }> {
    const { stdout, stderr } = await promisify(execFile)(
      "bash",
      ["-c", `for i in {1..25}; do "$NODE" "$HOLDFAST" ${line}; echo "status \${PIPESTATUS[0]}"; done`],
      { env: { PATH: process.env["PATH"], HOME: person.home, NODE: process.execPath, HOLDFAST: command } },
    );
    return { statuses: new Set(stdout.match(/status \d+/g)), complaints: stderr };
  }

  it("OPS-01 ends quietly when the pipe is closed, as other tools do", async () => {
    for (const { statuses, complaints } of await Promise.all([
      piped("--help | true"),
      piped("node --help | head -1"),
    ])) {
      expect(complaints).toBe("");
      // 0 where the reader has left only after the last byte.
      expect(["status 0", "status 141"]).toEqual(expect.arrayContaining([...statuses]));
    }
  });

  it("OPS-01 says so when the output cannot be written", async () => {
    const { stderr } = await promisify(execFile)(
      "bash",
      ["-c", '"$NODE" "$HOLDFAST" --help > /dev/full || echo "status $?" >&2'],
      { env: { HOME: person.home, NODE: process.execPath, HOLDFAST: command } },
    );
    expect(stderr).toMatch(/^error: Cannot write the output: .*ENOSPC.*\nstatus 1\n$/);
  });
});

describe("help", () => {
  it("is there for every command, and ends with 0", async () => {
    const top = await subcommands([]);
    expect(top).toEqual(expect.arrayContaining(["up", "down", "status", "login", "org", "token", "audit", "api"]));
    const leaves: string[][] = [];
    await aFewAtATime(top, async (name) => {
      leaves.push(...(await subcommands([name])).map((child) => [name, child]));
    });
    expect(leaves.map((path) => path.join(" "))).toEqual(
      expect.arrayContaining(["org invite", "token create", "audit list", "admin link"]),
    );
    await aFewAtATime(leaves, subcommands);
  });

  it("tells the exit codes and the version", async () => {
    expect((await person.holdfast(["--help"])).stdout).toContain("Exit codes: 0 success");
    expect(await person.holdfast(["--version"])).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^\d+\.\d+/),
    });
  });

  it("is text also for one who asked for JSON", async () => {
    const { code, stdout, stderr } = await person.holdfast(["token", "list", "--json", "--help"]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(stdout).toContain("Usage: holdfast token list");
  });

  it("of a command is the same by `help` in front", async () => {
    const [one, other] = await Promise.all([
      person.holdfast(["help", "token"]),
      person.holdfast(["token", "--help"]),
    ]);
    expect(one).toEqual(other);
  });
});

describe("exit code 2", () => {
  it.for([
    [["frobnicate"], "unknown command 'frobnicate'"],
    [[], "Usage: holdfast"],
    [["token"], "Usage: holdfast token"],
    [["token", "frobnicate"], "unknown command 'frobnicate'"],
    [["token", "list", "--frobnicate"], "unknown option '--frobnicate'"],
    [["token", "create"], "--name <name>' not specified"],
    [["token", "create", "--name", "x", "--role", "king"], "Allowed choices are owner, admin, member"],
    [["token", "create", "--name", "x", "--scope", "all"], "Allowed choices are org:read"],
    [["token", "create", "--name", "x", "--expires", "soon"], "Use a whole number of days."],
    [["token", "revoke"], "missing required argument 'id'"],
    [["org", "list", "surplus"], "too many arguments"],
    [["audit", "list", "--since", "yesterday"], "Use an ISO 8601 time, or an age such as 30m, 12h, 7d."],
    [["audit", "list", "--result", "maybe"], "Allowed choices are allowed, denied, failed"],
    [["audit", "list", "--limit", "many"], "a whole number"],
    [["audit", "list", "--limit", "201"], "1 to 200"],
  ] as const)("for %j", async ([args, complaint]) => {
    const outcome = await person.holdfast([...args], { env: nowhere });
    expect({ code: outcome.code, stdout: outcome.stdout }).toEqual({ code: 2, stdout: "" });
    expect(outcome.stderr).toContain(complaint);
  });

  it.for([
    [["frobnicate"], "unknown command 'frobnicate'"],
    [[], "unknown option '--json'"],
    [["token"], "unknown option '--json'"],
    [["token", "list", "--frobnicate"], "unknown option '--frobnicate'"],
    [["token", "create"], "required option '--name <name>' not specified"],
    [["audit", "list", "--limit", "many"], "option '--limit <count>' argument 'many' is invalid."],
    [["org", "list", "surplus"], "too many arguments"],
  ] as const)("for %j, as JSON for scripts", async ([args, complaint]) => {
    const { code, stdout, stderr } = await person.holdfast([...args, "--json"], { env: nowhere });
    expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
    const { error } = JSON.parse(stderr);
    expect(error).toEqual({ code: "usage", message: expect.stringContaining(complaint) });
    expect(error.message).not.toMatch(/^error/);
  });

  it("OPS-03 for a setting that is wrong, as text and as JSON", async () => {
    const env = { HOLDFAST_API_URL: "kelp", HOLDFAST_TOKEN: "geheim" };
    const text = await person.holdfast(["token", "list"], { env });
    expect(text.code).toBe(2);
    expect(text.stderr).toContain('HOLDFAST_API_URL is "kelp". Allowed: an http:// or https:// URL');
    expect(text.stderr).not.toContain("geheim");
    const json = await person.holdfast(["token", "list", "--json"], { env });
    expect(JSON.parse(json.stderr)).toMatchObject({ error: { code: "usage" } });
  });

  it("OPS-03 for a server without a token", async () => {
    const { code, stderr } = await person.holdfast(["token", "list"], {
      env: { HOLDFAST_API_URL: "http://a.example" },
    });
    expect(code).toBe(2);
    expect(stderr).toContain("HOLDFAST_TOKEN");
  });
});

describe("exit code 3", () => {
  it("when the server does not answer", async () => {
    const { code, stderr } = await person.holdfast(["token", "list"], { env: nowhere });
    expect(code).toBe(3);
    expect(stderr).toContain("http://127.0.0.1:2 is unreachable (ECONNREFUSED)");
    const json = await person.holdfast(["org", "list", "--json"], { env: nowhere });
    expect(json).toMatchObject({ code: 3, stdout: "" });
    expect(JSON.parse(json.stderr)).toMatchObject({ error: { code: "unreachable" } });
  });

  it("when nothing runs on this machine and nobody signed in", async () => {
    for (const args of [
      ["token", "list"],
      ["admin", "link"],
      ["org", "list", "--local"],
    ]) {
      const { code, stderr } = await person.holdfast(args);
      expect(code, args.join(" ")).toBe(3);
      expect(stderr).toContain(`No Holdfast server is running on ${person.home}/no-installation`);
      expect(stderr).toContain("holdfast login");
    }
  });
});

describe("holdfast status", () => {
  it("says with exit code 1 that nothing runs", async () => {
    const { code, stdout } = await person.holdfast(["status", "--json"]);
    expect(code).toBe(1);
    expect(JSON.parse(stdout)).toMatchObject({ api: { ok: false }, database: { ok: false } });
  });
});

describe("behind a proxy that has its own words", () => {
  let proxy: Server;
  let url: string;
  beforeAll(async () => {
    proxy = createServer((_request, response) => {
      response.writeHead(502, { "content-type": "text/html" }).end("<h1>Bad Gateway</h1>");
    }).listen(0, "127.0.0.1");
    await once(proxy, "listening");
    url = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`;
  });
  afterAll(() => proxy.close());

  it("a command says that the answer is not Holdfast's", async () => {
    const env = { HOLDFAST_API_URL: url, HOLDFAST_TOKEN: "hft_none" };
    const { code, stderr } = await person.holdfast(["org", "list"], { env });
    expect(code).toBe(1);
    expect(stderr).toContain("502");
    expect(stderr).toContain("proxy");
    expect(stderr).not.toContain("Bad Gateway");
  });
});
