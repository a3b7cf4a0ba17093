// Builds the page: node build.mjs DIRECTORY. The same sources and packages give the same bytes, on every machine.

import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { build } from "esbuild";
import { gzipSync } from "fflate";

const dir = process.argv[2];
if (!dir) throw new Error("say where the page goes: node build.mjs DIRECTORY");
mkdirSync(dir, { recursive: true });

const built = await build({
  entryPoints: { studio: "src/main.tsx" },
  bundle: true,
  minify: true,
  format: "esm",
  target: "es2022",
  jsx: "automatic",
  jsxImportSource: "preact",
  legalComments: "none",
  charset: "utf8",
  outdir: dir,
  write: false,
  logLevel: "warning",
});
const files = built.outputFiles.map((file) => [file.path.split("/").pop(), file.contents]);
for (const name of ["index.html", "icon.svg"]) files.push([name, readFileSync(`src/${name}`)]);

let total = 0;
for (const [name, bytes] of files) {
  // Compressed by a package, not by Node, whose zlib differs from version to version.
  const packed = gzipSync(bytes, { level: 9, mtime: 0 });
  writeFileSync(`${dir}/${name}`, bytes);
  writeFileSync(`${dir}/${name}.gz`, packed);
  total += packed.length;
  console.log(`${name} ${bytes.length} bytes, ${packed.length} compressed`);
}
console.log(`${total} bytes compressed in total`);
