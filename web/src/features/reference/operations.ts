// The OpenAPI document as the page shows it: operations in groups, each with plain rows.

import { type FieldRow, rowsOfSchema, type Schema, typeInWords } from "./schema-rows.ts";

type Content = { "application/json"?: { schema: Schema } };

type RawOperation = {
  operationId: string;
  tags?: string[];
  summary?: string;
  description?: string;
  "x-access"?: string;
  parameters?: { name: string; in: string; required?: boolean; description?: string; schema: Schema }[];
  requestBody?: { content: Content };
  responses: Record<string, { description: string; content?: Content }>;
};

export type OpenApiDocument = {
  info: { title: string; version: string; description?: string };
  paths: Record<string, Record<string, RawOperation>>;
};

export type ErrorRow = { status: string; code: string; message: string };

export type Operation = {
  id: string;
  group: string;
  method: string;
  path: string;
  summary: string;
  description: string;
  access: string;
  parameters: (FieldRow & { where: string })[];
  body: FieldRow[];
  bodySchema: Schema | undefined;
  answer: { status: string; rows: FieldRow[] };
  errors: ErrorRow[];
};

export type Group = { name: string; operations: Operation[] };

export function groupsOf(document: OpenApiDocument): Group[] {
  const groups = new Map<string, Operation[]>();
  for (const [path, methods] of Object.entries(document.paths)) {
    for (const [method, raw] of Object.entries(methods)) {
      const operation = operationOf(path, method, raw);
      groups.set(operation.group, [...(groups.get(operation.group) ?? []), operation]);
    }
  }
  return [...groups].map(([name, operations]) => ({ name, operations }));
}

function operationOf(path: string, method: string, raw: RawOperation): Operation {
  const [status, success] = Object.entries(raw.responses).find(([code]) => code.startsWith("2")) ?? [
    "200",
    undefined,
  ];
  const bodySchema = raw.requestBody?.content["application/json"]?.schema;
  const answerSchema = success?.content?.["application/json"]?.schema;
  return {
    id: raw.operationId,
    group: raw.tags?.[0] ?? "other",
    method: method.toUpperCase(),
    path,
    summary: raw.summary ?? raw.operationId,
    description: raw.description ?? "",
    access: raw["x-access"] ?? "public",
    parameters: (raw.parameters ?? []).map((each) => {
      const [row] = rowsOfSchema({ properties: { [each.name]: each.schema } });
      return {
        name: each.name,
        where: each.in,
        type: typeInWords(each.schema),
        required: each.required ?? false,
        description: each.description ?? "",
        limits: row?.limits ?? "",
      };
    }),
    body: bodySchema ? rowsOfSchema(bodySchema) : [],
    bodySchema,
    answer: { status, rows: answerSchema ? rowsOfSchema(answerSchema) : [] },
    errors: Object.entries(raw.responses)
      .filter(([code]) => !code.startsWith("2"))
      .flatMap(([code, response]) => errorRows(code, response.description)),
  };
}

/** One paragraph per code: "`code` what it means". */
function errorRows(status: string, description: string): ErrorRow[] {
  return description.split("\n\n").map((paragraph) => {
    const [, code = "", message = paragraph] = /^`(\w+)` (.*)$/s.exec(paragraph) ?? [];
    return { status, code, message };
  });
}

/** Every word must occur somewhere in what names the operation. */
export function matching(groups: readonly Group[], filter: string): Group[] {
  const words = filter.toLowerCase().split(/\s+/).filter(Boolean);
  const fits = (operation: Operation) => {
    const text =
      `${operation.id} ${operation.method} ${operation.path} ${operation.summary} ${operation.access}`.toLowerCase();
    return words.every((word) => text.includes(word));
  };
  return groups
    .map((group) => ({ ...group, operations: group.operations.filter(fits) }))
    .filter((group) => group.operations.length > 0);
}
