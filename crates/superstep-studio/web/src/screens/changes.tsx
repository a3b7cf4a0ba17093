// The difference between two checkpoints, and who made it.

import { own } from "../api/client.ts";
import type { Changes, Outline } from "../api/types.ts";
import { Badge } from "../ui/basic.tsx";
import { Value, type More } from "../ui/value.tsx";

/** Reads more of a channel at a checkpoint. */
export function moreOf(thread: string, at: string | null, channel: string): More | undefined {
  if (!at) return undefined;
  const root = `/${channel.replaceAll("~", "~0").replaceAll("/", "~1")}`;
  return (path, offset) => own<Outline>(`/threads/${thread}/outline`, { checkpoint_id: at, path: root + path, offset });
}

const KINDS = { added: "new", removed: "gone", changed: "changed", appended: "longer" } as const;

export function ChangeList({ of, thread }: { of: Changes; thread: string }) {
  if (of.changes.length === 0) return <p class="dim">No value changed.</p>;
  return (
    <ul class="changes">
      {of.changes.map((change) => (
        <li key={change.channel} class="change">
          <div class="row wrap">
            <b class="mono">{change.channel}</b>
            <Badge>{KINDS[change.kind]}</Badge>
            {change.writers.length > 0 && (
              <span class="dim">
                written by {change.writers.map((writer, at) => (
                  <span key={writer.task} title={`task ${writer.task}`}>{at > 0 ? ", " : ""}<b>{writer.node}</b></span>
                ))}
              </span>
            )}
          </div>
          {change.before && change.kind !== "appended" && (
            <div class="side removed"><span class="sign" aria-label="before">−</span><Value of={change.before} more={moreOf(thread, of.from, change.channel)} /></div>
          )}
          {change.after && (
            <div class="side added"><span class="sign" aria-label="after">+</span><Value of={change.after} more={moreOf(thread, of.to, change.channel)} /></div>
          )}
        </li>
      ))}
    </ul>
  );
}
