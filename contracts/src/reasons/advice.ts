// Advice of the catalogue for one node. Its commands stand there with `<id>`; a person pastes what is shown.

export function adviceFor(node: string, advice: string): string {
  return advice.replaceAll("<id>", node);
}
