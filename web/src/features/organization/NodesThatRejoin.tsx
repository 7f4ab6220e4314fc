// A warning about nodes whose bootstrap token ends, with what to do for each.

import { type IssuedToken, nodesRejoiningWith } from "@holdfast/contracts/public/issued-tokens";
import { Notice } from "../../design/feedback/Notice.tsx";

/** Nothing when no node depends on these tokens. */
export function NodesThatRejoin({ tokens }: { tokens: readonly IssuedToken[] }) {
  const nodes = nodesRejoiningWith(tokens);
  if (nodes.length === 0) return null;
  return (
    <Notice
      state="degraded"
      title={
        nodes.length === 1
          ? "1 node depends on one of these tokens"
          : `${nodes.length} nodes depend on these tokens`
      }
    >
      <p>
        Without a new bootstrap token {nodes.length === 1 ? "it" : "they"} cannot enroll again after a rebuild:
      </p>
      <ul className="mt-1 space-y-0.5">
        {nodes.map((name) => (
          <li key={name} className="font-mono text-sm wrap-anywhere">
            holdfast node token create --bootstrap --node {name}
          </li>
        ))}
      </ul>
    </Notice>
  );
}
