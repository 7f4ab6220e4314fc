// Advice of the catalogue for one node. Its commands contain `<id>` in place of the node; people paste what is printed.

export function adviceFor(node: string, advice: string): string {
  return advice.replaceAll("<id>", () => node);
}
