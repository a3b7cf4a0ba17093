// A form from a JSON Schema. What it cannot show as fields is written as JSON; the server has the last word on what fits.

import { useState } from "preact/hooks";
import type { Json, Schema } from "../api/types.ts";
import { Button } from "./basic.tsx";

/** What was entered, or why it is no value. */
export type Entered = { value: Json } | { problem: string };

type Fields = { schema: Schema; value: Json | undefined; set: (value: Json | undefined) => void; label: string };

const list = (value: unknown): unknown[] => (Array.isArray(value) ? value : []);
const properties = (schema: Schema): [string, Schema][] =>
  Object.entries((schema.properties ?? {}) as Record<string, Schema>);
const variants = (schema: Schema): Schema[] => list(schema.anyOf ?? schema.oneOf) as Schema[];

/** The one type that a schema allows beside null. */
function typeOf(schema: Schema): string | undefined {
  const types = list(schema.type).filter((type) => type !== "null");
  if (types.length === 1) return String(types[0]);
  return typeof schema.type === "string" ? schema.type : undefined;
}

/** References inside a schema, put in. */
function resolved(schema: Schema, root: Schema): Schema {
  const at = typeof schema.$ref === "string" ? /^#\/(\$defs|definitions)\/(.+)$/.exec(schema.$ref) : null;
  if (!at) return schema;
  const defs = (root[at[1] ?? ""] ?? {}) as Record<string, Schema>;
  return defs[at[2] ?? ""] ?? {};
}

function choices(schema: Schema): Json[] | null {
  if (Array.isArray(schema.enum)) return schema.enum as Json[];
  if ("const" in schema) return [schema.const as Json];
  return null;
}

/** Whether fields can be shown for it. */
export function hasFields(schema: Schema | null): schema is Schema {
  if (!schema) return false;
  if (choices(schema)) return true;
  if (variants(schema).length > 0) return true;
  const type = typeOf(schema);
  if (type === "object") return properties(schema).length > 0;
  return type !== undefined && ["string", "number", "integer", "boolean"].includes(type);
}

export function SchemaForm({ schema, value, set, label }: Fields) {
  return <Entry schema={schema} root={schema} value={value} set={set} label={label} />;
}

function Entry({ schema: given, root, value, set, label }: Fields & { root: Schema }) {
  const schema = resolved(given, root);
  const fixed = choices(schema);
  if (fixed) return <Choice options={fixed} value={value} set={set} label={label} />;
  const several = variants(schema).filter((one) => typeOf(resolved(one, root)) !== "null" && one.type !== "null");
  if (several.length === 1 && several[0]) {
    return <Entry schema={several[0]} root={root} value={value} set={set} label={label} />;
  }
  if (several.length > 1) return <Variants several={several} root={root} value={value} set={set} label={label} />;
  const about = typeof schema.description === "string" ? schema.description : undefined;
  switch (typeOf(schema)) {
    case "object":
      if (properties(schema).length > 0) return <Group schema={schema} root={root} value={value} set={set} label={label} />;
      break;
    case "boolean":
      return <Choice options={[true, false]} value={value} set={set} label={label} />;
    case "string":
      return (
        <label class="field">
          <span class="field-label">{label}</span>
          <textarea
            rows={2}
            value={typeof value === "string" ? value : ""}
            onInput={(event) => set(event.currentTarget.value)}
          />
          {about && <span class="hint">{about}</span>}
        </label>
      );
    case "integer":
    case "number":
      return (
        <label class="field">
          <span class="field-label">{label}</span>
          <input
            type="number"
            step={typeOf(schema) === "integer" ? 1 : "any"}
            value={typeof value === "number" ? value : ""}
            onInput={(event) => {
              const number = event.currentTarget.valueAsNumber;
              set(Number.isNaN(number) ? undefined : number);
            }}
          />
          {about && <span class="hint">{about}</span>}
        </label>
      );
  }
  return <JsonField label={label} value={value} set={set} />;
}

function Choice({ options, value, set, label }: {
  options: Json[];
  value: Json | undefined;
  set: (value: Json) => void;
  label: string;
}) {
  return (
    <fieldset class="choice">
      <legend class="field-label">{label}</legend>
      <div class="row">
        {options.map((option) => {
          const text = typeof option === "string" ? option : JSON.stringify(option);
          const chosen = JSON.stringify(option) === JSON.stringify(value);
          return (
            <Button key={text} kind={chosen ? "main" : "plain"} pressed={chosen} onClick={() => set(option)}>
              {typeof option === "boolean" ? (option ? "yes" : "no") : text}
            </Button>
          );
        })}
      </div>
    </fieldset>
  );
}

/** What a variant of an answer is called: its title, the names of its fields, or its type. */
function named(schema: Schema): string {
  if (typeof schema.title === "string") return schema.title;
  const names = properties(schema).map(([name]) => name);
  if (names.length > 0) return names.join(", ");
  return typeOf(schema) ?? "JSON";
}

function Variants({ several, root, value, set, label }: Omit<Fields, "schema"> & { several: Schema[]; root: Schema }) {
  const [at, choose] = useState(-1);
  // What can be chosen by one press stands in one line, whichever variant it comes from.
  const fixed = several.flatMap((one) => choices(resolved(one, root)) ?? []);
  const others = several.map((one) => resolved(one, root)).filter((one) => !choices(one));
  const chosen = others[at];
  return (
    <fieldset class="choice">
      <legend class="field-label">{label}</legend>
      <div class="row">
        {fixed.map((option) => {
          const text = typeof option === "string" ? option : JSON.stringify(option);
          const pressed = at < 0 && JSON.stringify(option) === JSON.stringify(value);
          const press = () => {
            choose(-1);
            set(option);
          };
          return <Button key={text} kind={pressed ? "main" : "plain"} pressed={pressed} onClick={press}>{text}</Button>;
        })}
        {others.map((one, nth) => {
          const press = () => {
            choose(nth);
            set(undefined);
          };
          return (
            <Button key={`v${nth}`} kind={at === nth ? "main" : "plain"} pressed={at === nth} onClick={press}>
              {named(one)}
            </Button>
          );
        })}
      </div>
      {chosen && <Entry key={at} schema={chosen} root={root} value={value} set={set} label={named(chosen)} />}
    </fieldset>
  );
}

function Group({ schema, root, value, set, label }: Fields & { root: Schema }) {
  const now = (value && typeof value === "object" && !Array.isArray(value) ? value : {}) as Record<string, Json>;
  const required = list(schema.required);
  return (
    <fieldset class="group">
      <legend class="field-label">{label}</legend>
      {properties(schema).map(([name, property]) => {
        const title = typeof property.title === "string" ? property.title : name;
        const change = (part: Json | undefined) => {
          const { [name]: _, ...rest } = now;
          const next: Record<string, Json> = part === undefined ? rest : { ...rest, [name]: part };
          set(next);
        };
        return (
          <Entry
            key={name}
            schema={property}
            root={root}
            value={now[name]}
            set={change}
            label={required.includes(name) ? title : `${title} (optional)`}
          />
        );
      })}
    </fieldset>
  );
}

/** A part of a value that is written as JSON. Text that is no JSON counts as a text. */
export function JsonField({ label, value, set, rows = 3 }: Omit<Fields, "schema"> & { rows?: number }) {
  const [text, write] = useState(value === undefined ? "" : JSON.stringify(value, null, 2));
  const entered = loose(text);
  return (
    <label class="field">
      <span class="field-label">{label}</span>
      <textarea
        class="mono"
        rows={rows}
        spellcheck={false}
        value={text}
        onInput={(event) => {
          const next = event.currentTarget.value;
          write(next);
          set(next.trim() === "" ? undefined : loose(next).value);
        }}
      />
      <span class="hint">{text.trim() !== "" && entered.isText ? "Not JSON: sent as a text" : "JSON"}</span>
    </label>
  );
}

function loose(text: string): { value: Json; isText: boolean } {
  try {
    return { value: JSON.parse(text) as Json, isText: false };
  } catch {
    return { value: text, isText: true };
  }
}

/** JSON that must be JSON. */
export function strict(text: string): Entered {
  try {
    return { value: JSON.parse(text) as Json };
  } catch (error) {
    return { problem: `This is not JSON: ${(error as Error).message}` };
  }
}

/** What is missing from a value by its schema; the server checks the rest. */
export function missing(schema: Schema | null, value: Json | undefined): string | null {
  if (value === undefined) return "Choose or write an answer first.";
  if (!schema || !value || typeof value !== "object" || Array.isArray(value)) return null;
  const fields = [schema, ...variants(schema)].filter((one) => typeOf(one) === "object");
  if (fields.length !== 1) return null;
  const names = list(fields[0]?.required).map(String).filter((name) => !(name in value));
  return names.length > 0 ? `Still missing: ${names.join(", ")}.` : null;
}
