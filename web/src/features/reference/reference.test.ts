import { allEndpoints } from "@holdfast/contracts/endpoints/all";
import { createToken } from "@holdfast/contracts/endpoints/tokens";
import { openApiDocument } from "@holdfast/contracts/public/openapi";
import { describe, expect, it } from "vitest";
import { curlOf } from "./curl.ts";
import { groupsOf, matching, type OpenApiDocument } from "./operations.ts";

const document = openApiDocument(allEndpoints, { version: "0.0.0" }) as OpenApiDocument;
const groups = groupsOf(document);
const operations = groups.flatMap((group) => group.operations);
const find = (id: string) => {
  const found = operations.find((each) => each.id === id);
  if (!found) throw new Error(`no operation ${id}`);
  return found;
};

describe("the API reference", () => {
  it("shows every endpoint of the contract once", () => {
    expect(operations.map((each) => each.id).sort()).toEqual(allEndpoints.map((each) => each.name).sort());
  });

  it("SEC-01 says who may call", () => {
    expect(find("createProject").access).toBe("projects:write");
    expect(find("signIn").access).toBe("public");
    expect(find("createOrganization").access).toBe("operator");
  });

  it("flattens nested answers into named rows", () => {
    const rows = Object.fromEntries(find("listTokens").answer.rows.map((row) => [row.name, row]));
    expect(rows["items"]?.type).toBe("array of object");
    expect(rows["items[].role"]?.type).toBe('"owner" | "admin" | "member"');
    expect(rows["items[].expires_at"]).toMatchObject({ type: "date-time or null", required: true });
    expect(rows["next_cursor"]?.type).toBe("string or null");
  });

  it("tells required from optional fields, and limits", () => {
    const rows = Object.fromEntries(find("createToken").body.map((row) => [row.name, row]));
    expect(rows["name"]).toMatchObject({ required: true, limits: "at most 80 characters" });
    expect(rows["role"]).toMatchObject({ required: false, limits: 'default "member"' });
    expect(rows["expires_in_days"]).toMatchObject({ required: false, limits: "from 1, up to 3650" });
  });

  it("lists each error code with its meaning", () => {
    const codes = find("redeemLink").errors;
    expect(codes).toContainEqual({ status: "410", code: "link_expired", message: "This link has expired." });
    expect(operations.flatMap((each) => each.errors).every((row) => row.code !== "" && row.message !== "")).toBe(
      true,
    );
  });

  it("finds operations by all words of the filter", () => {
    expect(
      matching(groups, "post /v1/tokens").flatMap((group) => group.operations.map((each) => each.id)),
    ).toEqual(["createToken"]);
    expect(matching(groups, "nothing matches this")).toEqual([]);
    expect(matching(groups, " ")).toHaveLength(groups.length);
  });

  it("gives an example whose body the endpoint accepts", () => {
    const curl = curlOf(find("createToken"), "https://holdfast.example");
    const body = /-d '(.*)'$/s.exec(curl)?.[1] ?? "";
    expect(createToken.body?.safeParse(JSON.parse(body)).success).toBe(true);
    expect(curlOf(find("deleteProject"), "")).toContain(`curl -X DELETE "/v1/projects/$PROJECT_ID"`);
    expect(curlOf(find("signIn"), "")).not.toContain("authorization");
  });
});
