/** The style of the page at `/`. */
import { tokensCss } from './design-tokens.ts'

export const homePageStyle = `
${tokensCss}* { box-sizing: border-box; }
body {
  margin: 0; background: var(--ground); color: var(--text);
  font: var(--text-14)/var(--line-body) var(--font-sans);
}
main { max-width: 46rem; margin: 0 auto; padding: clamp(2rem, 9vh, 5.5rem) 1.25rem 3rem; }
header { display: flex; gap: var(--space-4); align-items: center; margin-bottom: var(--space-8); }
svg { width: 48px; height: 48px; flex: none; color: var(--accent); }
h1 { margin: 0; font-size: var(--text-26); line-height: 1.15; letter-spacing: -.015em; }
header p { margin: var(--space-1) 0 0; color: var(--text-2); }
header p::before {
  content: ""; display: inline-block; width: .55rem; height: .55rem; margin-right: var(--space-2); border-radius: 50%;
  background: var(--good);
}
h2 {
  font-size: var(--text-12); letter-spacing: .06em; text-transform: uppercase; color: var(--text-2);
  margin: var(--space-12) 0 var(--space-3);
}
ul {
  list-style: none; margin: 0; padding: 0; display: grid; gap: var(--space-3); grid-template-columns: repeat(3, 1fr);
}
li a {
  display: block; height: 100%; padding: var(--space-4); border: 1px solid var(--line);
  border-radius: var(--radius-4); box-shadow: var(--shadow-1);
  background: var(--surface); color: var(--text); text-decoration: none;
}
li a:hover { border-color: var(--accent); }
a:focus-visible { outline: 2px solid var(--focus); outline-offset: 2px; }
li b { display: block; color: var(--accent-text); font-weight: 600; }
li span {
  display: block; margin-top: var(--space-half); color: var(--text-2); font-size: var(--text-13); line-height: 1.45;
}
.notice {
  margin: var(--space-6) 0 0; padding: var(--space-3) var(--space-4); border: 1px solid var(--line);
  border-left: 3px solid var(--warn);
  border-radius: var(--radius-2); background: var(--surface); font-size: var(--text-14);
}
ol { list-style: none; margin: 0; padding: 0; }
ol p { margin: var(--space-4) 0 var(--space-2); }
li:first-child p { margin-top: 0; }
code, pre { font-family: var(--font-mono); font-size: .86em; }
pre {
  margin: 0; padding: var(--space-3) var(--space-4); border: 1px solid var(--line); border-radius: var(--radius-3);
  background: var(--sunken);
  line-height: 1.6; font-size: var(--text-13); white-space: pre-wrap; overflow-wrap: anywhere;
}
pre code { font-size: 1em; }
p code {
  padding: .1em .35em; border: 1px solid var(--line); border-radius: var(--radius-1); background: var(--sunken);
  overflow-wrap: anywhere;
}
@media (max-width: 38rem) {
  ul { grid-template-columns: 1fr; gap: var(--space-2); }
}
`
