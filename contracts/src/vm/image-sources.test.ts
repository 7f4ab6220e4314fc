import { describe, expect, it } from "vitest";
import { isAllowedImageUrl, parseImageUrl } from "./image-sources.ts";

describe("the URL of an image", () => {
  it.for([
    ["https://images.example.com/a.qcow2", true],
    ["http://10.0.0.5:8080/base/a.qcow2", true],
    ["https://user:secret@images.example.com/a.qcow2", false],
    ["https://images.example.com/a.qcow2?signature=secret", false],
    ["https://images.example.com/a.qcow2#x", false],
    ["https://images.example.com/base%2F..%2Fa.qcow2", false],
    ["file:///etc/shadow", false],
    ["ftp://images.example.com/a", false],
    ["a.qcow2", false],
  ] as const)("SEC-04 %s: %s", ([url, valid]) => {
    expect(parseImageUrl(url) !== undefined).toBe(valid);
  });
});

describe("what the owner of a host allows", () => {
  const sources = ["https://images.example.com/base/", "http://127.0.0.1:8080/one.qcow2"];
  it.for([
    ["https://images.example.com/base/a.qcow2", true],
    ["https://images.example.com/base/deeper/a.qcow2", true],
    ["http://127.0.0.1:8080/one.qcow2", true],
    ["https://images.example.com/base/../a.qcow2", false],
    ["https://images.example.com/base/%2e%2e/a.qcow2", false],
    ["https://images.example.com/basement/a.qcow2", false],
    ["http://images.example.com/base/a.qcow2", false],
    ["https://images.example.com:8443/base/a.qcow2", false],
    ["https://images.example.com.evil.example/base/a.qcow2", false],
    ["http://127.0.0.1:8080/one.qcow2.other", false],
    ["http://127.0.0.1:8081/one.qcow2", false],
  ] as const)("SEC-04 %s: %s", ([url, allowed]) => {
    expect(isAllowedImageUrl(url, sources)).toBe(allowed);
  });

  it("SEC-04 is nothing by default", () => {
    expect(isAllowedImageUrl("https://images.example.com/a", [])).toBe(false);
  });
});
