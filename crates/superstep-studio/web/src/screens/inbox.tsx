// What waits for me: the open questions of all threads, and answering them.

import { useState } from "preact/hooks";
import { reason } from "../api/client.ts";
import { answer, asked, openQuestions, type Answered, type Question } from "../api/inbox.ts";
import type { Json } from "../api/types.ts";
import { useEvery, useLoad } from "../lib/load.ts";
import { href, refine } from "../route.ts";
import { Badge, Button, Due, Empty, Failure, Id, Notice, Time, Title, Waiting } from "../ui/basic.tsx";
import { hasFields, JsonField, missing, SchemaForm } from "../ui/form.tsx";
import { Shown } from "../ui/value.tsx";

/** More characters are on the panel of the question. */
const HEADLINE = 120;

/** The line that says what is asked: the text of the question, if it has one. */
export function headline(value: Json): string {
  const text = described(value);
  return text.length > HEADLINE ? `${text.slice(0, HEADLINE - 1)}…` : text;
}

function described(value: Json): string {
  if (typeof value === "string") return value;
  if (value && typeof value === "object" && !Array.isArray(value)) {
    for (const name of ["question", "title", "message", "action", "ask", "description"]) {
      const text = value[name];
      if (typeof text === "string" && text) return text;
    }
    const parts = Object.entries(value).map(([name, part]) => `${name}: ${typeof part === "string" ? part : JSON.stringify(part)?.slice(0, HEADLINE)}`);
    return parts.length > 0 ? parts.join(", ") : "a question";
  }
  return JSON.stringify(value);
}

export function Inbox({ chosen }: { chosen: string }) {
  const [pages, show] = useState(1);
  const list = useLoad(`inbox ${pages}`, async () => {
    const questions: Question[] = [];
    let next: string | null = null;
    for (let page = 0; page < pages; page += 1) {
      const found = await openQuestions(next);
      questions.push(...found.questions);
      next = found.next;
      if (!next) break;
    }
    return { questions, more: next !== null };
  });
  useEvery(3000, list.again);
  const questions = list.data?.questions ?? [];
  const open = questions.find((one) => one.id === chosen);
  return (
    <>
      <Title about="Runs that stopped to ask. The one that waits longest comes first.">Inbox</Title>
      {list.error && <Failure why={list.error} again={list.again} />}
      {list.waiting && <Waiting />}
      {list.data && questions.length === 0 && !chosen && (
        <Empty title="Nothing waits for you">
          When a graph asks a question, it appears here. To see one, <a href={href(["try"])}>start a graph in the playground</a>.
        </Empty>
      )}
      <div class={chosen ? "split chosen" : "split"}>
        {questions.length > 0 && (
          <ul class="rows" aria-label="Open questions">
            {questions.map((one) => (
              <li key={one.id} class={one.id === chosen ? "chosen" : ""}>
                <a data-row class="row-link" href={href(["inbox"], { q: one.id })} aria-current={one.id === chosen ? "true" : undefined}>
                  <span class="row-title">{headline(one.value)}</span>
                  <span class="row-about">
                    <Badge tone="ask">{one.graph || "unknown graph"}</Badge>
                    <span>asked <Time at={one.asked} />{one.due && <>, answered by the clock <Due at={one.due} /></>}</span>
                  </span>
                </a>
              </li>
            ))}
            {list.data?.more && <li class="row-more"><Button onClick={() => show(pages + 1)}>Show more</Button></li>}
          </ul>
        )}
        {chosen && list.data && (
          <QuestionPanel key={chosen} id={chosen} known={open} done={list.again} />
        )}
      </div>
    </>
  );
}

function QuestionPanel({ id, known, done }: { id: string; known: Question | undefined; done: () => void }) {
  // What was shown stays shown when it is answered, here or elsewhere.
  const [question, keep] = useState(known);
  if (!question && known) keep(known);
  if (!question) {
    return (
      <div class="panel">
        <Empty title="This question is not open any more">
          It was answered, or its thread went on in another way. <a href={href(["inbox"])}>Back to the inbox</a>
        </Empty>
      </div>
    );
  }
  return (
    <section class="panel" aria-label="Question">
      <header class="panel-head">
        <h2>{headline(question.value)}</h2>
        <Button kind="quiet" label="Close the question" onClick={() => refine({ q: null })}>✕</Button>
      </header>
      <p class="dim">
        Thread <Id of={question.thread} to={href(["thread", question.thread])} /> of {question.graph}, asked <Time at={question.asked} />
      </p>
      <AnswerForm thread={question.thread} id={id} value={question.value} gone={!known} done={done} />
    </section>
  );
}

/** A question with the form for its answer. Also part of a thread's own page. */
export function AnswerForm({ thread, id, value, gone, done }: {
  thread: string;
  id: string;
  value: Json;
  gone: boolean;
  done: () => void;
}) {
  const details = useLoad(`asked ${thread} ${id}`, () => asked(thread));
  const schema = details.data?.find((one) => one.id === id)?.schema ?? null;
  const [entered, enter] = useState<Json | undefined>(undefined);
  const [raw, useRaw] = useState(false);
  const [sending, send] = useState(false);
  const [ended, end] = useState<Answered | { was: "failed"; why: string } | null>(null);
  const [problem, complain] = useState<string | null>(null);
  const submit = async (event: Event) => {
    event.preventDefault();
    const wrong = missing(schema, entered);
    complain(wrong);
    if (wrong || entered === undefined) return;
    send(true);
    end(null);
    const became = await answer(thread, id, entered).catch((error: unknown) => ({ was: "failed" as const, why: reason(error) }));
    send(false);
    end(became);
    done();
  };
  const over = ended?.was === "taken" || ended?.was === "late";
  const fields = hasFields(schema) && !raw;
  return (
    <div class="stack">
      <Shown of={value} />
      {details.error && <Failure why={details.error} again={details.again} />}
      {ended && <Outcome ended={ended} thread={thread} />}
      {!over && gone && !ended && (
        <Notice tone="warn">Somebody else has answered this question in the meantime. See the <a href={href(["thread", thread])}>thread</a>.</Notice>
      )}
      {!over && !(gone && !ended) && (
        <form class="stack" onSubmit={submit}>
          {details.waiting ? <Waiting rows={1} /> : fields ? (
            <SchemaForm label="Your answer" schema={schema} value={entered} set={enter} />
          ) : (
            <JsonField label="Your answer" value={entered} set={enter} />
          )}
          {problem && <p class="notice bad" role="alert">{problem}</p>}
          <div class="row">
            <Button kind="main" submit disabled={sending || details.waiting}>{sending ? "Sending…" : "Answer"}</Button>
            {hasFields(schema) && (
              <Button kind="quiet" onClick={() => { useRaw(!raw); enter(undefined); }}>{raw ? "As a form" : "As JSON"}</Button>
            )}
          </div>
        </form>
      )}
    </div>
  );
}

function Outcome({ ended, thread }: { ended: Answered | { was: "failed"; why: string }; thread: string }) {
  const to = <a href={href(["thread", thread])}>See the thread</a>;
  switch (ended.was) {
    case "taken":
      return <Notice tone="good">Your answer was taken, and the thread goes on. {to}</Notice>;
    case "late":
      return <Notice tone="warn">Somebody else answered first. Your answer was not used. {to}</Notice>;
    case "busy":
      return <Notice tone="warn">The thread is running right now. Answer when it rests again. {to}</Notice>;
    case "refused":
      return <Notice tone="bad">The answer was refused, and the question is still open: {ended.why}</Notice>;
    case "failed":
      return <Notice tone="bad">The answer could not be sent: {ended.why}</Notice>;
  }
}
