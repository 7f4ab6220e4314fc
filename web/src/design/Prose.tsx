// Text from the server may mark code with backticks, as in "run `holdfast status`".

export function Prose({ text }: { text: string }) {
  return text.split("`").map((part, index) =>
    index % 2 === 0 ? (
      part
    ) : (
      // biome-ignore lint/suspicious/noArrayIndexKey: the parts of one text never move
      <Code key={index}>{part}</Code>
    ),
  );
}

export function Code({ children }: { children: string }) {
  return (
    <code className="rounded-sm bg-sunken px-1 py-px font-mono text-[0.92em] [overflow-wrap:anywhere]">
      {children}
    </code>
  );
}
