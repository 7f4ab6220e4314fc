// Lets the agents of a process dial a few at a time. Real ones are on machines of their own: here one that is connected
// already must not wait until thousands of others have made their keys and shaken hands.

/** Resolves when it is one's turn, with what ends it. */
export type Dialling = () => Promise<() => void>;

const AT_ONCE = 32;

export function createDialling(atOnce = AT_ONCE): Dialling {
  const waiting: (() => void)[] = [];
  let underWay = 0;
  const begin = () => {
    while (underWay < atOnce) {
      const next = waiting.shift();
      if (!next) return;
      underWay += 1;
      next();
    }
  };
  return () =>
    new Promise((resolve) => {
      let ended = false;
      const end = () => {
        if (ended) return;
        ended = true;
        underWay -= 1;
        // Not from within whatever ended: what is connected comes first.
        setImmediate(begin);
      };
      waiting.push(() => resolve(end));
      begin();
    });
}
