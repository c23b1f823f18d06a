/** What the checks read of TypeScript: the modules that a file imports, and where a match stands. */

const importPattern = /^[ \t]*(?:import|export)\b(?:[^'"`;]*?\bfrom)?\s*['"]([^'"\n]+)['"]/gm
const dynamicPattern = /\bimport\(\s*['"]([^'"\n]+)['"]/g

/** What a file imports, in any way and for types too, as it is written there. */
export const importsOf = (text: string): string[] =>
  [importPattern, dynamicPattern].flatMap((pattern) => [...text.matchAll(pattern)].map((match) => match[1] as string))

/** The number of the line at an offset, from 1. */
export const lineAt = (text: string, offset: number): number => text.slice(0, offset).split('\n').length
