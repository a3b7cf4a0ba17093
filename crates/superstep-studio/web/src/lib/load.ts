// Reading something from the server while a component is shown.

import { useEffect, useRef, useState } from "preact/hooks";
import { epoch, reason, status } from "../api/client.ts";

export type Loaded<T> = {
  data: T | undefined;
  /** Why it could not be read, next to what was read before. */
  error: string | null;
  status: number | undefined;
  /** The first answer is on its way. */
  waiting: boolean;
  again: () => Promise<void>;
};

/** What `read` gives, for as long as `about` stays the same. Older answers never replace newer ones. */
export function useLoad<T>(about: string, read: () => Promise<T>): Loaded<T> {
  const [state, set] = useState<{ about: string; data?: T; error: string | null; status?: number | undefined }>({
    about,
    error: null,
  });
  const turn = useRef(0);
  const latest = useRef(read);
  latest.current = read;
  const now = epoch.value;
  const load = async () => {
    const mine = ++turn.current;
    try {
      const data = await latest.current();
      if (mine === turn.current) set({ about, data, error: null });
    } catch (error) {
      if (mine !== turn.current) return;
      // What was shown stays readable while the server is away.
      set((before) => ({
        about,
        ...(before.about === about && before.data !== undefined ? { data: before.data } : {}),
        error: reason(error),
        status: status(error),
      }));
    }
  };
  useEffect(() => {
    load();
    return () => {
      turn.current += 1;
    };
  }, [about, now]);
  const fits = state.about === about;
  return {
    data: fits ? state.data : undefined,
    error: fits ? state.error : null,
    status: fits ? state.status : undefined,
    waiting: !fits || (state.data === undefined && state.error === null),
    again: load,
  };
}

/** Calls `act` every so often while the page is seen. */
export function useEvery(millis: number, act: () => void): void {
  const latest = useRef(act);
  latest.current = act;
  useEffect(() => {
    const timer = setInterval(() => {
      if (document.visibilityState === "visible") latest.current();
    }, millis);
    return () => clearInterval(timer);
  }, [millis]);
}
