/** The style of the page at `/`. */
import { pageTokens } from './page-tokens.ts'

export const homePageStyle = `
:root {
${pageTokens}  --quiet: light-dark(#626771, #979da8);
  --good: light-dark(#1a7f4b, #5cc48f);
  --notice: light-dark(#9a6700, #dcb04e);
}
* { box-sizing: border-box; }
body {
  margin: 0; background: var(--ground); color: var(--text);
  font: 16px/1.55 system-ui, -apple-system, "Segoe UI", "Noto Sans", sans-serif;
}
main { max-width: 46rem; margin: 0 auto; padding: clamp(2rem, 9vh, 5.5rem) 1.25rem 3rem; }
header { display: flex; gap: 1.1rem; align-items: center; margin-bottom: 2.2rem; }
svg { width: 3.4rem; height: 3.4rem; flex: none; color: var(--accent); }
h1 { margin: 0; font-size: 1.9rem; line-height: 1.15; letter-spacing: -.015em; }
header p { margin: .3rem 0 0; color: var(--quiet); font-size: .95rem; }
header p::before {
  content: ""; display: inline-block; width: .55rem; height: .55rem; margin-right: .5rem; border-radius: 50%;
  background: var(--good);
}
h2 {
  font-size: .78rem; letter-spacing: .06em; text-transform: uppercase; color: var(--quiet); margin: 2.6rem 0 .8rem;
}
ul { list-style: none; margin: 0; padding: 0; display: grid; gap: .8rem; grid-template-columns: repeat(3, 1fr); }
li a {
  display: block; height: 100%; padding: .9rem 1.1rem 1rem; border: 1px solid var(--line); border-radius: 10px;
  background: var(--raised); color: var(--text); text-decoration: none;
}
li a:hover { border-color: var(--accent); }
a:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; }
li b { display: block; color: var(--accent); font-weight: 600; }
li span { display: block; color: var(--quiet); font-size: .86rem; line-height: 1.45; margin-top: .15rem; }
.notice {
  margin: 1.4rem 0 0; padding: .75rem 1.1rem; border: 1px solid var(--line); border-left: 3px solid var(--notice);
  border-radius: 6px; background: var(--raised); font-size: .93rem;
}
ol { list-style: none; margin: 0; padding: 0; }
ol p { margin: 1.1rem 0 .4rem; font-size: .95rem; }
li:first-child p { margin-top: 0; }
code, pre { font-family: var(--mono); font-size: .86em; }
pre {
  margin: 0; padding: .75rem 1rem; border: 1px solid var(--line); border-radius: 8px; background: var(--sunken);
  line-height: 1.6; font-size: .84rem; white-space: pre-wrap; overflow-wrap: anywhere;
}
pre code { font-size: 1em; }
p code {
  padding: .1em .35em; border: 1px solid var(--line); border-radius: 4px; background: var(--sunken);
  overflow-wrap: anywhere;
}
@media (max-width: 38rem) {
  ul { grid-template-columns: 1fr; gap: .6rem; }
}
`
