import { describe, expect, it } from "vitest";
import { httpsUrl, namedAddresses, namedUrls } from "./settings.ts";

describe("settings of the environment profile", () => {
  it("ID-16 names further endpoints", () => {
    expect(namedUrls.parse("registry=https://registry.internal, mirror=http://10.0.0.5:8080")).toEqual({
      registry: "https://registry.internal",
      mirror: "http://10.0.0.5:8080",
    });
  });

  it.for([
    "registry",
    "=https://a.example",
    "A=https://a.example",
    "a=ftp://a",
    "a=https://a/path",
    "a=http://a,",
    "a=http://a,a=http://b",
  ])("ID-16 refuses %j as endpoints", (text) => {
    expect(namedUrls.parse(text)).toBeUndefined();
  });

  it("ID-16 gives addresses to names", () => {
    expect(namedAddresses.parse("nodes.internal=10.0.0.5+fd00::5,b=10.0.0.6")).toEqual({
      "nodes.internal": ["10.0.0.5", "fd00::5"],
      b: ["10.0.0.6"],
    });
  });

  it.for([
    "nodes.internal",
    "nodes.internal=",
    "nodes.internal=elsewhere",
    "a=10.0.0.1+",
    "-a=10.0.0.1",
    "a b=10.0.0.1",
    "a=10.0.0.1,a=10.0.0.2",
  ])("ID-16 refuses %j as addresses", (text) => {
    expect(namedAddresses.parse(text)).toBeUndefined();
  });

  it("ID-16 takes no clear-text address for agents", () => {
    expect(httpsUrl.parse("https://nodes.example.com:18442")).toBe("https://nodes.example.com:18442");
    for (const text of ["http://nodes.example.com", "https://nodes.example.com/path", "nodes.example.com"]) {
      expect(httpsUrl.parse(text)).toBeUndefined();
    }
  });
});
