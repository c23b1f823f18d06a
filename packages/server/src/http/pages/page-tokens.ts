/** CSS custom properties that the pages at `/` and `/docs` share: colors in light and dark, and the code font. */
export const pageTokens = `  color-scheme: light dark;
  --ground: light-dark(#fbfbfa, #16181b);
  --raised: light-dark(#fff, #1d2024);
  --sunken: light-dark(#f3f3f0, #121417);
  --line: light-dark(#e4e4de, #2e3238);
  --text: light-dark(#22252a, #e2e4e8);
  --accent: light-dark(#1d5fbf, #7fb0f5);
  --mono: ui-monospace, "SF Mono", "Cascadia Mono", "DejaVu Sans Mono", monospace;
`
