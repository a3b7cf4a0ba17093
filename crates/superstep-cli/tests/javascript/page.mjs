// A page without a browser, in which components are rendered.

import { Window } from "happy-dom";

const window = new Window({ url: "http://localhost/" });
for (const name of ["window", "navigator", "document", "HTMLElement", "Node", "sessionStorage", "localStorage"]) {
  Object.defineProperty(globalThis, name, { value: name === "window" ? window : window[name], configurable: true, writable: true });
}
// Requests are made by Node, as a browser would make them.
window.fetch = globalThis.fetch;

const { createElement } = await import("react");
const { createRoot } = await import("react-dom/client");

/** Renders a component that uses a hook, and gives what the hook returned last. */
export function mount(hook) {
  const now = { hook: null, text: "" };
  function Component() {
    now.hook = hook();
    return createElement("p", null, JSON.stringify(now.hook.values ?? null));
  }
  const place = document.createElement("div");
  document.body.appendChild(place);
  const root = createRoot(place);
  root.render(createElement(Component));
  return {
    get hook() {
      return now.hook;
    },
    get text() {
      return place.textContent;
    },
    unmount: () => root.unmount(),
  };
}
