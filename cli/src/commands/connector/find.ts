// Finds a connector by its name.

import { UsageError } from "@holdfast/kit/settings";
import * as all from "@holdfast/workflows/connectors/all";
import type { Connector } from "@holdfast/workflows/connectors/connector";

export const connectors: Readonly<Record<string, Connector>> = all;

export function findConnector(name: string): Connector {
  const found = Object.hasOwn(connectors, name) ? connectors[name] : undefined;
  if (found) return found;
  throw new UsageError(`There is no connector ${name}. There are: ${Object.keys(connectors).join(", ")}.`);
}
