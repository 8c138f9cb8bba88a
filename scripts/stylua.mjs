// Check or mend the format of Lua files with StyLua, which is a library here (WebAssembly).
//
//   node scripts/stylua.mjs MODULE [--check] PATH...
//
// MODULE is what `scripts/tools.py stylua` prints. The settings are those of `.stylua.toml`.
import { readFileSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const root = path.dirname(path.dirname(fileURLToPath(import.meta.url)));

/** Returns, for each setting of `.stylua.toml` that this script knows, how its value is read. */
function readers(stylua) {
  const word = (values) => (text) => values[text.replaceAll('"', '')];
  return {
    syntax: word(stylua.LuaVersion),
    column_width: Number,
    line_endings: word(stylua.LineEndings),
    indent_type: word(stylua.IndentType),
    indent_width: Number,
    quote_style: word(stylua.QuoteStyle),
    call_parentheses: word(stylua.CallParenType),
    collapse_simple_statement: word(stylua.CollapseSimpleStatement),
  };
}

/** Returns the library's configuration as `.stylua.toml` has it; an unknown line is an error. */
function configuration(stylua) {
  const config = stylua.Config.new();
  const known = readers(stylua);
  for (const line of readFileSync(path.join(root, '.stylua.toml'), 'utf8').split('\n')) {
    if (line.trim() === '' || line.startsWith('#')) continue;
    const [name, text] = line.split('=').map((part) => part.trim());
    const value = known[name]?.(text);
    if (value === undefined || Number.isNaN(value)) {
      throw new Error(`.stylua.toml: "${line}" is not a setting this script knows`);
    }
    config[name] = value;
  }
  return config;
}

/** Returns the Lua files at a path or under it. */
function luaFiles(given) {
  if (!statSync(given).isDirectory()) return [given];
  return readdirSync(given, { recursive: true })
    .filter((name) => name.endsWith('.lua'))
    .map((name) => path.join(given, name))
    .sort();
}

/** Returns the first line, counted from one, in which two texts differ. */
function firstDifference(before, after) {
  const [old, mended] = [before.split('\n'), after.split('\n')];
  const line = old.findIndex((text, index) => text !== mended[index]);
  const at = line < 0 ? old.length : line;
  return `line ${at + 1}\n  - ${old[at] ?? ''}\n  + ${mended[at] ?? ''}`;
}

function main([module, ...rest]) {
  const check = rest.includes('--check');
  const paths = rest.filter((argument) => argument !== '--check');
  if (module === undefined || paths.length === 0) {
    console.error('usage: stylua.mjs MODULE [--check] PATH...');
    return 2;
  }
  const stylua = createRequire(import.meta.url)(module);
  const files = paths.flatMap(luaFiles);
  let wrong = 0;
  for (const file of files) {
    const before = readFileSync(file, 'utf8');
    let after;
    try {
      const verify = stylua.OutputVerification.Full;
      // The library consumes its configuration, so each file gets one of its own.
      after = stylua.formatCode(before, configuration(stylua), undefined, verify);
    } catch (error) {
      console.error(`${file}: ${error}`);
      wrong += 1;
      continue;
    }
    if (after === before) continue;
    if (check) {
      console.error(`${file}: not formatted from ${firstDifference(before, after)}`);
      wrong += 1;
    } else {
      writeFileSync(file, after);
    }
  }
  console.log(`stylua: ${files.length} files, ${wrong} to mend`);
  return wrong === 0 && files.length > 0 ? 0 : 1;
}

process.exitCode = main(process.argv.slice(2));
