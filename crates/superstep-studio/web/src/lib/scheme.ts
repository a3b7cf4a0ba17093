// Light or dark: as the system says, unless the reader chose.

import { signal } from "@preact/signals";

export type Scheme = "system" | "light" | "dark";

const KEY = "superstep-studio-scheme";
const stored = localStorage.getItem(KEY);

export const scheme = signal<Scheme>(stored === "light" || stored === "dark" ? stored : "system");

export function applyScheme(): void {
  document.documentElement.dataset.scheme = scheme.value;
}

export function nextScheme(): void {
  scheme.value = scheme.value === "system" ? "light" : scheme.value === "light" ? "dark" : "system";
  localStorage.setItem(KEY, scheme.value);
  applyScheme();
}
