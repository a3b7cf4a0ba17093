// Counts what was shown, and stops at the first thing that is not so.

let shown = 0;

export function show(what, condition, ...rest) {
  if (!condition) {
    console.log("FAILED:", what, ...rest.map((one) => JSON.stringify(one)));
    process.exit(1);
  }
  shown += 1;
}

export function finish() {
  console.log(`${shown} shown`);
  process.exit(0);
}

/** Whether a call is refused with this status. */
export async function refused(status, call) {
  try {
    await call();
  } catch (error) {
    return error.status === status || String(error).includes(`${status}`);
  }
  return false;
}

/** Waits until something is so, and fails if it never is. */
export async function until(what, condition) {
  const end = Date.now() + 30_000;
  while (!(await condition())) {
    if (Date.now() > end) show(what, false, "never");
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  show(what, true);
}

export async function all(stream) {
  const seen = [];
  for await (const part of stream) seen.push(part);
  return seen;
}
