import { Link } from "@tanstack/react-router";

/** To the page of a node, where the node is what a row is about. */
export function NodeLink({ node }: { node: { id: string; name: string } }) {
  return (
    <Link
      to="/nodes/$nodeId"
      params={{ nodeId: node.id }}
      className="rounded-sm font-medium text-kelp [overflow-wrap:anywhere] hover:underline"
    >
      {node.name}
    </Link>
  );
}
