import "./style/tokens.css";
import "./style/base.css";
import "./style/parts.css";
import "./style/screens.css";
import { render } from "preact";
import { App } from "./app.tsx";
import { applyScheme } from "./lib/scheme.ts";

applyScheme();
render(<App />, document.getElementById("app") as HTMLElement);
