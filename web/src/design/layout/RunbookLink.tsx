// To a page of the api, in a tab of its own: whoever follows it wants to keep what they look at.

export function RunbookLink({ path }: { path: string }) {
  return (
    <a href={path} target="_blank" rel="noreferrer" className="text-kelp underline">
      Runbook
      <span className="sr-only"> (opens in a new tab)</span>
    </a>
  );
}
