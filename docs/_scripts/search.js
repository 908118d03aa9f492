// The search of the built pages, by Sphinx's own code: node search.js SITE QUERY... prints the documents found, best first,
// one JSON list a query.
"use strict";

const fs = require("node:fs");
const path = require("node:path");
const vm = require("node:vm");

const [site, ...queries] = process.argv.slice(2);
const nothing = new Proxy(function () {}, { get: (_, name) => (name === Symbol.toPrimitive ? () => "" : nothing), apply: () => nothing });
const scope = {
  document: { getElementById: () => null, addEventListener: () => {}, documentElement: nothing, readyState: "loading" },
  localStorage: { setItem: () => {} },
  SPHINX_HIGHLIGHT_ENABLED: false,
  _ready: () => {},
  _: (text) => text, // translations
  console,
  URLSearchParams,
};
scope.window = scope;
vm.createContext(scope);
const run = (file) => vm.runInContext(fs.readFileSync(path.join(site, file), "utf8"), scope, file);
run("_static/language_data.js");
run("_static/searchtools.js");
vm.runInContext("globalThis.Search = Search", scope);
run("searchindex.js");
for (const query of queries) {
  scope.query = query;
  scope.location = { search: `?q=${encodeURIComponent(query)}` };
  const results = vm.runInContext("Search._performSearch(...Search._parseQuery(query))", scope);
  const documents = results.map((result) => result[0]).reverse(); // the page shows the last result first
  console.log(JSON.stringify([...new Set(documents)]));
}
