// The few timers of one terminal, by name.

export type Timers<Name extends string> = {
  /** Starts it unless it runs already, or stops it. */
  keep(name: Name, needed: boolean, ms: number): void;
  restart(name: Name, ms: number): void;
  stop(name: Name): void;
  stopAll(): void;
};

export function createTimers<Name extends string>(onOver: (name: Name) => void): Timers<Name> {
  const running = new Map<Name, NodeJS.Timeout>();
  const stop = (name: Name) => {
    clearTimeout(running.get(name));
    running.delete(name);
  };
  const restart = (name: Name, ms: number) => {
    stop(name);
    const over = () => {
      running.delete(name);
      onOver(name);
    };
    running.set(name, setTimeout(over, ms));
  };
  return {
    restart,
    stop,
    keep(name, needed, ms) {
      if (!needed) stop(name);
      else if (!running.has(name)) restart(name, ms);
    },
    stopAll() {
      for (const name of [...running.keys()]) stop(name);
    },
  };
}
