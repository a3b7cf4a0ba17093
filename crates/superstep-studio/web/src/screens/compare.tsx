// Two checkpoints side by side.

import { own } from "../api/client.ts";
import type { Changes, Moment } from "../api/types.ts";
import { useLoad } from "../lib/load.ts";
import { clock } from "../lib/time.ts";
import { refine } from "../route.ts";
import { Button, Empty, Failure, Field, Panel, Waiting } from "../ui/basic.tsx";
import { Value } from "../ui/value.tsx";
import { moreOf } from "./changes.tsx";
import type { ThreadProps } from "./thread.tsx";
import { useTimeline } from "./timeline.tsx";

export function Compare({ id, info, query }: ThreadProps) {
  const time = useTimeline(id, info.updated_at);
  const rows = time.rows;
  const b = query.get("b") || rows[0]?.checkpoint_id || "";
  const of = rows.find((row) => row.checkpoint_id === b);
  const a = query.get("a") || of?.parent_checkpoint_id || rows[1]?.checkpoint_id || "";
  const changes = useLoad(`compare ${id} ${a} ${b}`, async () =>
    a && b ? own<Changes>(`/threads/${id}/changes`, { checkpoint_id: b, from: a }) : null);
  if (time.waiting) return <Waiting rows={6} />;
  if (rows.length < 2) return <Empty title="There is nothing to compare">A thread has two states once it has run.</Empty>;
  return (
    <section class="stack" aria-label="Compare">
      <div class="row wrap">
        <Choice label="Before" rows={rows} value={a} choose={(a) => refine({ a, b })} />
        <Choice label="After" rows={rows} value={b} choose={(b) => refine({ a, b })} />
        <Button onClick={() => refine({ a: b, b: a })}>Swap</Button>
        {time.hasMore && <Button onClick={time.more}>Read older ones</Button>}
      </div>
      {changes.error && <Failure why={changes.error} again={changes.again} />}
      {changes.waiting && <Waiting rows={4} />}
      {changes.data?.changes.length === 0 && <Empty title="The values are equal" />}
      {changes.data?.changes.map((change) => (
        <Panel key={change.channel} title={<span class="mono">{change.channel}</span>} name={change.channel}>
          <div class="sides">
            <div class="side removed">{change.before ? <Value of={change.before} more={moreOf(id, a, change.channel)} /> : <span class="dim">not there</span>}</div>
            <div class="side added">
              {change.after ? <Value of={change.after} more={moreOf(id, b, change.channel)} /> : <span class="dim">not there</span>}
              {change.kind === "appended" && <p class="dim">added at the end</p>}
            </div>
          </div>
        </Panel>
      ))}
    </section>
  );
}

function Choice({ label, rows, value, choose }: { label: string; rows: Moment[]; value: string; choose: (id: string) => void }) {
  const known = rows.some((row) => row.checkpoint_id === value);
  return (
    <Field label={label}>
      <select value={value} onChange={(event) => choose(event.currentTarget.value)}>
        {!known && <option value={value}>an older checkpoint</option>}
        {rows.map((row) => (
          <option key={row.checkpoint_id} value={row.checkpoint_id}>
            step {row.step} · {clock(row.created_at)} · {row.next.join(", ") || "end"}
          </option>
        ))}
      </select>
    </Field>
  );
}
