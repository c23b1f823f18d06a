/** The style of the page at `/docs`. */
import { tokensCss } from './design-tokens.ts'

export const docsPageStyle = `
${tokensCss}* { box-sizing: border-box; }
[hidden] { display: none !important; }
html { scroll-padding-top: 5rem; }
body {
  margin: 0; display: grid; grid-template: auto 1fr / 17rem minmax(0, 1fr);
  background: var(--ground); color: var(--text);
  font: var(--text-14)/var(--line-body) var(--font-sans);
}
header {
  grid-column: 1 / -1; position: sticky; top: 0; z-index: 1; padding: var(--space-3) var(--space-6);
  display: flex; gap: var(--space-6); align-items: center; justify-content: space-between;
  background: var(--surface); border-bottom: 1px solid var(--line);
}
header div { display: flex; gap: var(--space-5); align-items: baseline; }
h1 { margin: 0; font-size: var(--text-16); }
h1 small { margin-left: var(--space-2); color: var(--text-2); font-weight: 400; font-size: var(--text-14); }
h2 { font-size: var(--text-20); margin: var(--space-8) 0 var(--space-4); }
h3 {
  font-size: var(--text-16); margin: 0 0 var(--space-2); display: flex; gap: var(--space-4);
  justify-content: space-between;
  align-items: baseline; flex-wrap: wrap;
}
h4 {
  font-size: var(--text-12); letter-spacing: .05em; text-transform: uppercase; color: var(--text-2);
  margin: var(--space-5) 0 var(--space-1);
}
p { margin: var(--space-2) 0; max-width: 46rem; }
a { color: var(--accent-text); text-decoration: none; }
a:hover { text-decoration: underline; }
code, pre, .type { font-family: var(--font-mono); font-size: .87em; }
.quiet { color: var(--text-2); font-size: .9em; }
input {
  font: inherit; color: inherit; background: var(--ground); border: 1px solid var(--line);
  border-radius: var(--radius-2); padding: var(--space-1) var(--space-3); min-width: 0;
}
input::placeholder { color: var(--text-2); opacity: .7; }
#search { width: 17rem; }
:is(input, button, a, summary, pre, .paths):focus-visible { outline: 2px solid var(--focus); outline-offset: 1px; }
nav {
  position: sticky; top: 3.4rem; align-self: start; max-height: calc(100vh - 3.4rem); overflow-y: auto;
  padding: var(--space-5) var(--space-2) var(--space-12) var(--space-6); border-right: 1px solid var(--line);
  min-height: calc(100vh - 3.4rem);
}
nav h2 {
  font-size: var(--text-12); letter-spacing: .05em; text-transform: uppercase; color: var(--text-2);
  margin: var(--space-5) 0 var(--space-2);
}
nav div:first-child h2 { margin-top: 0; }
nav a {
  display: flex; gap: var(--space-2); align-items: baseline; padding: var(--space-half) var(--space-2);
  border-radius: var(--radius-1);
  color: var(--text); font-size: var(--text-14); line-height: 1.4;
}
nav code { font-size: .95em; }
nav a:hover { background: var(--sunken); text-decoration: none; }
nav .method { width: 3.6em; flex: none; font-size: var(--text-11); }
main { padding: 0 var(--space-8) 6rem; max-width: 66rem; }
main > section:first-child > h2 { margin-top: var(--space-6); }
.operation {
  background: var(--surface); border: 1px solid var(--line); border-radius: var(--radius-4);
  padding: var(--space-5) var(--space-6); margin-bottom: var(--space-5);
}
.operation:target { border-color: var(--accent); }
.name { font: var(--text-14) var(--font-mono); font-weight: 400; color: var(--text-2); }
.paths {
  display: flex; gap: var(--space-3); align-items: baseline; background: var(--sunken);
  border-radius: var(--radius-2);
  padding: var(--space-2) var(--space-3); overflow-x: auto;
}
.paths code { display: block; white-space: nowrap; line-height: 1.7; }
.method { font: 700 var(--text-12) var(--font-mono); color: var(--text-2); }
.get { color: var(--good); }
.post, .put { color: var(--accent-text); }
.patch { color: var(--warn); }
.delete { color: var(--bad); }
table { width: 100%; border-collapse: collapse; }
td {
  padding: var(--space-2) var(--space-3) var(--space-2) 0; border-top: 1px solid var(--line);
  vertical-align: baseline;
  overflow-wrap: anywhere;
}
tr:first-child td { border-top: 0; }
td:first-child { width: 30%; } td:nth-child(2) { width: 25%; } td:nth-child(4) { width: 30%; padding-right: 0; }
td:first-child:nth-last-child(4) { width: 22%; } td:nth-child(2):nth-last-child(3) { width: 12%; }
td input { width: 100%; padding: var(--space-half) var(--space-2); font: var(--text-14) var(--font-mono); }
td b { color: var(--bad); margin-left: .15em; }
.depth-1 { padding-left: var(--space-5); }
.depth-2 { padding-left: var(--space-8); }
.depth-3 { padding-left: var(--space-16); }
.depth-4 { padding-left: 4.8rem; }
.type { color: var(--text-2); }
.reply { padding: var(--space-1) 0; }
.reply summary { cursor: pointer; }
.reply > table { margin: var(--space-1) 0 var(--space-3); background: var(--sunken); border-radius: var(--radius-2); }
.reply > table td { padding-left: var(--space-3); }
.reply > table .depth-1 { padding-left: var(--space-8); } .reply > table .depth-2 { padding-left: var(--space-12); }
.status { font: 700 var(--text-14) var(--font-mono); margin-right: var(--space-3); }
div.reply .status { margin-left: var(--space-4); }
.s2 { color: var(--good); } .s4 { color: var(--warn); } .s5 { color: var(--bad); }
.curl { position: relative; margin-top: var(--space-5); }
.curl pre {
  margin: 0; font-size: .82em; padding: var(--space-3) var(--space-4); background: var(--sunken);
  border-radius: var(--radius-2);
  overflow-x: auto; line-height: 1.6;
}
.curl code { font-size: 1em; }
.curl button {
  position: absolute; top: .45rem; right: .5rem; font: inherit; font-size: var(--text-13);
  padding: var(--space-half) var(--space-2); cursor: pointer;
  color: var(--text); background: var(--surface); border: 1px solid var(--line); border-radius: var(--radius-1);
}
@media (max-width: 52rem) {
  body { grid-template-columns: minmax(0, 1fr); }
  header { flex-wrap: wrap; gap: var(--space-2); }
  #search { width: 100%; }
  nav { display: none; }
  main { padding: 0 var(--space-4) var(--space-16); }
  table, tbody, tr { display: block; }
  tr { padding: var(--space-2) 0; border-top: 1px solid var(--line); }
  tr:first-child { border-top: 0; }
  td, td:first-child:nth-last-child(4), td:nth-child(2):nth-last-child(3) {
    display: block; width: auto; padding-top: 0; padding-bottom: 0; border-top: 0;
  }
  td:nth-child(4) { display: none; }
}
`
