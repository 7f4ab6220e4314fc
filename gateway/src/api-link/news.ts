// Follows the api's news: what must happen at once. A connection without data is closed and reopened.

import { followServiceNews, ServiceNews } from "@holdfast/contracts/internal/endpoints";
import type { Connections } from "./client.ts";

const SILENT_MS = 20_000;
const MOST_LINE_CHARACTERS = 64 * 1024;

export type NewsOptions = {
  api: Connections;
  signal: AbortSignal;
  onOpen(): void;
  onNews(news: ServiceNews): void;
};

/** Resolves when the connection ends, for whatever reason. */
export async function followNews({ api, signal, onOpen, onNews }: NewsOptions): Promise<void> {
  const response = await api.open(followServiceNews, { signal });
  response.setEncoding("utf8");
  const silence = setTimeout(() => response.destroy(), SILENT_MS);
  let rest = "";
  try {
    onOpen();
    for await (const chunk of response) {
      silence.refresh();
      const lines = (rest + chunk).split("\n");
      rest = lines.pop() ?? "";
      for (const news of lines.map(readNews)) if (news) onNews(news);
      if (rest.length > MOST_LINE_CHARACTERS) return;
    }
  } finally {
    clearTimeout(silence);
    response.destroy();
  }
}

/** Unknown news of a newer api are ignored. */
function readNews(line: string): ServiceNews | undefined {
  try {
    return ServiceNews.safeParse(JSON.parse(line)).data;
  } catch {
    return undefined;
  }
}
