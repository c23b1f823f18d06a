/** The style of the page at `/docs`. */
import { pageTokens } from './page-tokens.ts'

export const docsPageStyle = `
:root {
${pageTokens}  --quiet: light-dark(#6a6f78, #979da8);
  --get: light-dark(#1a7f4b, #5cc48f);
  --post: light-dark(#1d5fbf, #7fb0f5);
  --patch: light-dark(#9a6700, #dcb04e);
  --delete: light-dark(#b3322c, #ee847e);
}
* { box-sizing: border-box; }
[hidden] { display: none !important; }
html { scroll-padding-top: 5rem; }
body {
  margin: 0; display: grid; grid-template: auto 1fr / 17rem minmax(0, 1fr);
  background: var(--ground); color: var(--text);
  font: 15px/1.55 system-ui, -apple-system, "Segoe UI", "Noto Sans", sans-serif;
}
header {
  grid-column: 1 / -1; position: sticky; top: 0; z-index: 1; padding: .7rem 1.5rem;
  display: flex; gap: 1.5rem; align-items: center; justify-content: space-between;
  background: var(--raised); border-bottom: 1px solid var(--line);
}
header div { display: flex; gap: 1.25rem; align-items: baseline; }
h1 { margin: 0; font-size: 1.1rem; }
h1 small { margin-left: .6rem; color: var(--quiet); font-weight: 400; font-size: .85rem; }
h2 { font-size: 1.25rem; margin: 2.5rem 0 1rem; }
h3 {
  font-size: 1.05rem; margin: 0 0 .6rem; display: flex; gap: 1rem; justify-content: space-between;
  align-items: baseline; flex-wrap: wrap;
}
h4 {
  font-size: .78rem; letter-spacing: .05em; text-transform: uppercase; color: var(--quiet);
  margin: 1.3rem 0 .35rem;
}
p { margin: .6rem 0; max-width: 46rem; }
a { color: var(--accent); text-decoration: none; }
a:hover { text-decoration: underline; }
code, pre, .type { font-family: var(--mono); font-size: .87em; }
.quiet { color: var(--quiet); font-size: .9em; }
input {
  font: inherit; color: inherit; background: var(--ground); border: 1px solid var(--line);
  border-radius: 6px; padding: .35rem .7rem; min-width: 0;
}
input::placeholder { color: var(--quiet); opacity: .7; }
#search { width: 17rem; }
:is(input, button, a, summary):focus-visible { outline: 2px solid var(--accent); outline-offset: 1px; }
nav {
  position: sticky; top: 3.4rem; align-self: start; max-height: calc(100vh - 3.4rem); overflow-y: auto;
  padding: 1.2rem .6rem 3rem 1.5rem; border-right: 1px solid var(--line); min-height: calc(100vh - 3.4rem);
}
nav h2 {
  font-size: .78rem; letter-spacing: .05em; text-transform: uppercase; color: var(--quiet);
  margin: 1.3rem 0 .4rem;
}
nav div:first-child h2 { margin-top: 0; }
nav a {
  display: flex; gap: .6rem; align-items: baseline; padding: .16rem .4rem; border-radius: 5px;
  color: var(--text); font-size: .88rem; line-height: 1.4;
}
nav code { font-size: .95em; }
nav a:hover { background: var(--sunken); text-decoration: none; }
nav .method { width: 3.6em; flex: none; font-size: .66rem; }
main { padding: 0 2.5rem 6rem; max-width: 66rem; }
main > section:first-child > h2 { margin-top: 1.5rem; }
.operation {
  background: var(--raised); border: 1px solid var(--line); border-radius: 10px;
  padding: 1.2rem 1.4rem; margin-bottom: 1.2rem;
}
.operation:target { border-color: var(--accent); }
.name { font: .85rem var(--mono); font-weight: 400; color: var(--quiet); }
.paths {
  display: flex; gap: .8rem; align-items: baseline; background: var(--sunken); border-radius: 6px;
  padding: .5rem .8rem; overflow-x: auto;
}
.paths code { display: block; white-space: nowrap; line-height: 1.7; }
.method { font: 700 .78rem var(--mono); color: var(--quiet); }
.get { color: var(--get); }
.post, .put { color: var(--post); }
.patch { color: var(--patch); }
.delete { color: var(--delete); }
table { width: 100%; border-collapse: collapse; }
td {
  padding: .38rem .8rem .38rem 0; border-top: 1px solid var(--line); vertical-align: baseline;
  overflow-wrap: anywhere;
}
tr:first-child td { border-top: 0; }
td:first-child { width: 30%; } td:nth-child(2) { width: 25%; } td:nth-child(4) { width: 30%; padding-right: 0; }
td:first-child:nth-last-child(4) { width: 22%; } td:nth-child(2):nth-last-child(3) { width: 12%; }
td input { width: 100%; padding: .15rem .5rem; font: .85rem var(--mono); }
td b { color: var(--delete); margin-left: .15em; }
.depth-1 { padding-left: 1.2rem; }
.depth-2 { padding-left: 2.4rem; }
.depth-3 { padding-left: 3.6rem; }
.depth-4 { padding-left: 4.8rem; }
.type { color: var(--quiet); }
.reply { padding: .2rem 0; }
.reply summary { cursor: pointer; }
.reply > table { margin: .3rem 0 .8rem; background: var(--sunken); border-radius: 6px; }
.reply > table td { padding-left: .8rem; }
.reply > table .depth-1 { padding-left: 2rem; } .reply > table .depth-2 { padding-left: 3.2rem; }
.status { font: 700 .85rem var(--mono); margin-right: .8rem; }
div.reply .status { margin-left: 1.05rem; }
.s2 { color: var(--get); } .s4 { color: var(--patch); } .s5 { color: var(--delete); }
.curl { position: relative; margin-top: 1.2rem; }
.curl pre {
  margin: 0; font-size: .82em; padding: .8rem 1rem; background: var(--sunken); border-radius: 6px;
  overflow-x: auto; line-height: 1.6;
}
.curl code { font-size: 1em; }
.curl button {
  position: absolute; top: .45rem; right: .5rem; font: inherit; font-size: .8rem; padding: .1rem .6rem; cursor: pointer;
  color: var(--text); background: var(--raised); border: 1px solid var(--line); border-radius: 5px;
}
@media (max-width: 52rem) {
  body { grid-template-columns: minmax(0, 1fr); }
  header { flex-wrap: wrap; gap: .6rem; }
  #search { width: 100%; }
  nav { display: none; }
  main { padding: 0 1rem 4rem; }
  td:nth-child(4) { display: none; }
}
`
