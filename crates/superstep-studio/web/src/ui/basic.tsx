// The parts that every screen is made of. `#/components` shows each of them.

import type { ComponentChildren, JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { signal } from "@preact/signals";
import { ago, exact, number, short } from "../lib/time.ts";

export type Tone = "plain" | "good" | "warn" | "bad" | "ask" | "run";

export function Button(props: {
  children: ComponentChildren;
  onClick?: () => void;
  kind?: "main" | "plain" | "quiet" | "danger";
  disabled?: boolean | undefined;
  submit?: boolean;
  label?: string;
  title?: string | undefined;
  pressed?: boolean;
}) {
  const { kind = "plain", children, onClick, disabled, submit, label, title, pressed } = props;
  return (
    <button
      type={submit ? "submit" : "button"}
      class={`button ${kind}`}
      disabled={disabled}
      aria-label={label}
      aria-pressed={pressed}
      title={title}
      onClick={onClick}
    >
      {children}
    </button>
  );
}

export function Badge({ tone = "plain", children }: { tone?: Tone; children: ComponentChildren }) {
  return <span class={`badge ${tone}`}>{children}</span>;
}

const TONES: Record<string, Tone> = {
  idle: "plain",
  busy: "run",
  running: "run",
  pending: "plain",
  interrupted: "ask",
  error: "bad",
  timeout: "bad",
  success: "good",
};

/** What people call the states of threads and runs. */
const WORDS: Record<string, string> = {
  idle: "at rest",
  busy: "running",
  interrupted: "waits",
  error: "failed",
  success: "done",
  timeout: "timed out",
};

export function Status({ of }: { of: string }) {
  return <Badge tone={TONES[of] ?? "plain"}>{WORDS[of] ?? of}</Badge>;
}

/** The time of the last second, for ages that are shown. One clock for the whole page. */
const now = signal(Date.now());
setInterval(() => {
  if (document.visibilityState === "visible") now.value = Date.now();
}, 15_000);

export function Time({ at }: { at: string | null | undefined }) {
  if (!at) return <span class="dim">never</span>;
  return (
    <time dateTime={at} title={exact(at)}>
      {ago(at, Math.max(now.value, Date.parse(at) || 0))}
    </time>
  );
}

/** A time to come. */
export function Due({ at }: { at: string | null | undefined }) {
  if (!at) return <span class="dim">never</span>;
  return (
    <time dateTime={at} title={exact(at)}>
      {ago(at, now.value)}
    </time>
  );
}

export function Id({ of, to }: { of: string; to?: string }) {
  const text = <span title={of}>{short(of)}</span>;
  return to ? <a class="mono" href={to}>{text}</a> : <span class="mono">{text}</span>;
}

export function Panel(props: {
  title?: ComponentChildren;
  actions?: ComponentChildren;
  children: ComponentChildren;
  name?: string;
}) {
  return (
    <section class="panel" aria-label={props.name}>
      {(props.title || props.actions) && (
        <header class="panel-head">
          {props.title && <h2>{props.title}</h2>}
          {props.actions && <div class="row">{props.actions}</div>}
        </header>
      )}
      {props.children}
    </section>
  );
}

export function Title({ children, about, actions }: {
  children: ComponentChildren;
  about?: ComponentChildren;
  actions?: ComponentChildren;
}) {
  return (
    <header class="title">
      <div>
        <h1 tabIndex={-1}>{children}</h1>
        {about && <p class="dim">{about}</p>}
      </div>
      {actions && <div class="row">{actions}</div>}
    </header>
  );
}

export function Empty({ title, children }: { title: string; children?: ComponentChildren }) {
  return (
    <div class="empty">
      <p class="strong">{title}</p>
      {children && <p class="dim">{children}</p>}
    </div>
  );
}

/** Why something is not there, and a way to try again. */
export function Failure({ why, again }: { why: string; again?: () => void }) {
  return (
    <div class="notice bad" role="alert">
      <span>{why}</span>
      {again && <Button kind="quiet" onClick={again}>Try again</Button>}
    </div>
  );
}

export function Notice({ tone, children }: { tone: Tone; children: ComponentChildren }) {
  return <div class={`notice ${tone}`} role="status">{children}</div>;
}

/** Keeps the place of what is not there yet. */
export function Waiting({ rows = 3 }: { rows?: number }) {
  return (
    <div class="waiting" role="status" aria-busy="true" aria-label="Loading">
      {Array.from({ length: rows }, (_, at) => <div key={at} class="bar" />)}
    </div>
  );
}

export function Tabs({ tabs, now: current }: { tabs: { id: string; label: string; to: string }[]; now: string }) {
  return (
    <nav class="tabs" aria-label="Views">
      {tabs.map(({ id, label, to }) => (
        <a key={id} href={to} aria-current={id === current ? "page" : undefined}>{label}</a>
      ))}
    </nav>
  );
}

export function Count({ of }: { of: number | undefined }) {
  return <span class="count">{of === undefined ? "" : number(of)}</span>;
}

export function Field({ label, hint, children }: { label: string; hint?: string; children: ComponentChildren }) {
  return (
    <label class="field">
      <span class="field-label">{label}</span>
      {children}
      {hint && <span class="hint">{hint}</span>}
    </label>
  );
}

/** A dialog of the browser: it keeps the focus inside and closes on Escape. */
export function Dialog({ title, children, onClose }: {
  title: string;
  children: ComponentChildren;
  onClose?: (() => void) | undefined;
}) {
  const place = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    place.current?.showModal();
    return () => place.current?.close();
  }, []);
  const cancel = (event: JSX.TargetedEvent<HTMLDialogElement>) => {
    event.preventDefault();
    onClose?.();
  };
  return (
    <dialog ref={place} class="dialog" aria-label={title} onCancel={cancel}>
      <header class="panel-head">
        <h2>{title}</h2>
        {onClose && <Button kind="quiet" label="Close" onClick={onClose}>✕</Button>}
      </header>
      {children}
    </dialog>
  );
}

export function CopyButton({ text, children }: { text: string | (() => string); children: ComponentChildren }) {
  const [done, say] = useState(false);
  const copy = async () => {
    await navigator.clipboard.writeText(typeof text === "string" ? text : text()).catch(() => undefined);
    say(true);
    setTimeout(() => say(false), 1500);
  };
  return <Button kind="quiet" onClick={copy}>{done ? "Copied" : children}</Button>;
}
