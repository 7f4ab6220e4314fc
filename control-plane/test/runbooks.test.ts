// Runbooks over HTTP: to anybody, also while nothing else works.

import { ErrorEnvelope } from "@holdfast/contracts/errors";
import { reasonCodes } from "@holdfast/contracts/reasons/catalogue";
import { beforeAll, describe, expect, it } from "vitest";
import { startTestApi, type TestApi } from "../../testkit/api/api.ts";
import { setReachable } from "../../testkit/database/database.ts";
import { renderRunbook } from "../src/runbooks/render.ts";

let api: TestApi;
beforeAll(async () => {
  api = await startTestApi();
});

async function get(path: string, accept = "text/html,application/xhtml+xml") {
  const response = await fetch(`${api.url}${path}`, { headers: { accept } });
  return { status: response.status, headers: response.headers, text: await response.text() };
}

describe("a runbook over HTTP", () => {
  it("OPS-04 is a page that needs no sign-in and runs nothing", async () => {
    const { status, headers, text } = await get("/runbooks/disk_full");
    expect(status).toBe(200);
    expect(headers.get("content-type")).toBe("text/html; charset=utf-8");
    const policy = headers.get("content-security-policy") ?? "";
    expect(policy).toMatch(/^default-src 'none'; style-src 'sha256-[\w+/]{43}='; /);
    expect(policy).not.toContain("unsafe");
    expect(text).toContain("<h1>Disk full</h1>");
    expect(text).toContain('<h2 id="what-you-do">What you do</h2>');
    expect(text).toContain('<a href="/runbooks/node_observability_disk_pressure">');
    expect(text).not.toMatch(/<script|<!--|\.md"/);
  });

  it("OPS-04 is Markdown for whoever asks for it", async () => {
    const { headers, text } = await get("/runbooks/disk_full.md");
    expect(headers.get("content-type")).toBe("text/markdown; charset=utf-8");
    expect(text).toMatch(/^# Disk full\n/);
    expect((await get("/runbooks/disk_full", "text/markdown")).text).toBe(text);
    expect((await get("/runbooks/disk_full", "text/plain, text/html")).text).toContain("<h1>");
    expect((await get("/runbooks/disk_full", "*/*")).text).toContain("<h1>");
    expect(headers.get("vary")).toBe("accept");
  });

  it("OPS-04 is found in the list of all, and every entry of the list exists", async () => {
    const { text } = await get("/runbooks");
    const listed = [...text.matchAll(/href="(\/runbooks\/[^"]+)"/g)].map(([, path = ""]) => path);
    expect(listed).toEqual(expect.arrayContaining(reasonCodes.map((code) => `/runbooks/${code}`)));
    const pages = await Promise.all(listed.map((path) => get(path)));
    expect(pages.filter(({ status }) => status !== 200)).toEqual([]);
  });

  it.for(["/runbooks/moon_phase", "/runbooks/README", "/runbooks/..%2f..%2fREADME.md", "/runbooks/constructor"])(
    "OPS-04 that does not exist gets the ordinary error, also as a page: %s",
    async (path) => {
      const { status, text } = await get(path);
      expect(status).toBe(404);
      expect(ErrorEnvelope.parse(JSON.parse(text))).toMatchObject({ code: "not_found" });
    },
  );

  it("OPS-04 can be read while the database is away and nobody can sign in", async () => {
    const away = await startTestApi();
    await setReachable(away.database, false);
    const response = await fetch(`${away.url}/runbooks/control_plane_unreachable`);
    expect([response.status, await response.text()]).toEqual([200, expect.stringContaining("Control plane")]);
    await setReachable(away.database, true);
  });
});

describe("a rendered runbook", () => {
  it("SEC-03 takes nothing of its text for HTML, and links only to runbooks and to the web", () => {
    const html = renderRunbook(
      [
        "# <b>Title</b>",
        '## A "part" & <i>more</i>',
        "Run <node> and `<id>`. <script>alert(1)</script>",
        "<!-- a note -->",
        '[a](other_page.md#part) [b](javascript:alert(1)) [c](../../secret.txt) [d](https://example.com/?a=1&b="2")',
        "![image](https://example.com/x.png)",
      ].join("\n\n"),
    );
    expect(html).toContain("<title>&lt;b&gt;Title&lt;/b&gt; · Holdfast runbook</title>");
    expect(html).toContain('<h2 id="a-part--imorei">A &quot;part&quot; &amp; &lt;i&gt;more&lt;/i&gt;</h2>');
    expect(html).toContain("Run &lt;node&gt; and <code>&lt;id&gt;</code>. &lt;script&gt;");
    expect(html).not.toMatch(/<script|<img|<b>|<i>|javascript:|secret\.txt|a note/);
    expect(html).toContain(
      '<a href="/runbooks/other_page#part">a</a> b c <a href="https://example.com/?a=1&amp;b=',
    );
  });
});
