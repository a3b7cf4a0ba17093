// Runs that a schedule starts.

import { useState } from "preact/hooks";
import { client, own, reason } from "../api/client.ts";
import { useEvery, useLoad } from "../lib/load.ts";
import { firings } from "../lib/cron.ts";
import { href } from "../route.ts";
import { Badge, Button, Dialog, Due, Empty, Failure, Field, Panel, Time, Title, Waiting } from "../ui/basic.tsx";

type Cron = {
  cron_id: string;
  assistant_id: string;
  thread_id: string | null;
  schedule: string;
  timezone?: string | null;
  next_run_date: string | null;
  enabled?: boolean;
  created_at: string;
};

export function Crons() {
  const [making, make] = useState(false);
  const [problem, complain] = useState<string | null>(null);
  const list = useLoad("crons", async () => (await client.value.crons.search({ limit: 100 })) as unknown as Cron[]);
  const assistants = useLoad("assistants of crons", () => client.value.assistants.search({ limit: 1000 }));
  useEvery(10_000, list.again);
  const name = (id: string) => assistants.data?.find((one) => one.assistant_id === id)?.name ?? id;
  const act = async (what: () => Promise<unknown>) => {
    complain(null);
    try {
      await what();
    } catch (error) {
      complain(reason(error));
    }
    list.again();
  };
  return (
    <>
      <Title about="Runs that start by themselves." actions={<Button kind="main" onClick={() => make(true)}>New cron</Button>}>Crons</Title>
      {problem && <Failure why={problem} />}
      {list.error && <Failure why={list.error} again={list.again} />}
      {list.waiting && <Waiting />}
      {list.data?.length === 0 && <Empty title="No run is scheduled">A cron starts runs at the times that its five fields name.</Empty>}
      {list.data?.map((cron) => {
        const enabled = cron.enabled !== false;
        return (
          <Panel
            key={cron.cron_id}
            name={`Cron ${cron.schedule}`}
            title={<span class="mono">{cron.schedule}</span>}
            actions={
              <>
                <Button kind="quiet" onClick={() => act(() => client.value.crons.update(cron.cron_id, { enabled: !enabled }))}>{enabled ? "Pause" : "Go on"}</Button>
                <Button kind="quiet" label={`Delete the cron ${cron.schedule}`} onClick={() => act(() => client.value.crons.delete(cron.cron_id))}>Delete</Button>
              </>
            }
          >
            <p class="row wrap">
              <Badge tone={enabled ? "good" : "plain"}>{enabled ? "on" : "paused"}</Badge>
              <span>{name(cron.assistant_id)}</span>
              {cron.thread_id && <a href={href(["thread", cron.thread_id])}>on one thread</a>}
              <span class="dim">times in {cron.timezone ?? "UTC"}, made <Time at={cron.created_at} /></span>
            </p>
            {enabled && (
              <ol class="firings" aria-label="Next firings">
                {firings(cron.schedule, cron.timezone ?? "UTC", cron.next_run_date, 5).map((at) => <li key={at}><Due at={at} /></li>)}
              </ol>
            )}
          </Panel>
        );
      })}
      {making && <NewCron assistants={assistants.data ?? []} close={() => make(false)} done={() => { make(false); list.again(); }} />}
    </>
  );
}

function NewCron({ assistants, close, done }: {
  assistants: { assistant_id: string; name: string }[];
  close: () => void;
  done: () => void;
}) {
  const [assistant, choose] = useState(assistants[0]?.assistant_id ?? "");
  const [schedule, write] = useState("0 9 * * 1-5");
  const [zone, set] = useState(Intl.DateTimeFormat().resolvedOptions().timeZone);
  const [problem, complain] = useState<string | null>(null);
  const submit = async (event: Event) => {
    event.preventDefault();
    try {
      // The stock client knows no time zones.
      await own("/runs/crons", {}, { assistant_id: assistant, schedule, timezone: zone, input: {} });
      done();
    } catch (error) {
      complain(reason(error));
    }
  };
  return (
    <Dialog title="New cron" onClose={close}>
      <form class="stack" onSubmit={submit}>
        <Field label="Assistant">
          <select value={assistant} onChange={(event) => choose(event.currentTarget.value)}>
            {assistants.map((one) => <option key={one.assistant_id} value={one.assistant_id}>{one.name}</option>)}
          </select>
        </Field>
        <Field label="Schedule" hint="Minute, hour, day, month, day of the week."><input class="mono" value={schedule} onInput={(event) => write(event.currentTarget.value)} /></Field>
        <Field label="Time zone"><input value={zone} onInput={(event) => set(event.currentTarget.value)} /></Field>
        {problem && <Failure why={problem} />}
        <div class="row end"><Button kind="main" submit>Create</Button></div>
      </form>
    </Dialog>
  );
}
