// The height that a keyboard on the screen leaves free; `dvh` knows nothing of it.

import { useSyncExternalStore } from "react";

export function useVisibleHeight(): string {
  return useSyncExternalStore(
    (listener) => {
      window.visualViewport?.addEventListener("resize", listener);
      return () => window.visualViewport?.removeEventListener("resize", listener);
    },
    () => {
      const { visualViewport } = window;
      // Zoomed in, the page is larger than what is seen of it, and should stay so.
      return visualViewport && visualViewport.scale === 1 ? `${visualViewport.height}px` : "100dvh";
    },
  );
}
