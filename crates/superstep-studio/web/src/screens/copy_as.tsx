// The same request for other programs.

import { curl, javascriptSdk, pythonSdk, type Started } from "../lib/copy.ts";
import { CopyButton } from "../ui/basic.tsx";

export function CopyAs({ started }: { started: Started }) {
  return (
    <div class="row wrap" role="group" aria-label="Copy as">
      <span class="dim">Copy as</span>
      <CopyButton text={() => curl(started)}>curl</CopyButton>
      <CopyButton text={() => pythonSdk(started)}>Python</CopyButton>
      <CopyButton text={() => javascriptSdk(started)}>JavaScript</CopyButton>
    </div>
  );
}
