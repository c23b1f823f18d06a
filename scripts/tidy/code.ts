/**
 * TypeScript as far as the checks need it: the code without what is written in comments and strings, and the modules
 * that a file names. A lexer of the common cases, not a parser.
 */

/** A `/` after one of these begins a regular expression; after anything else it divides. */
const beforeRegex = /(?:^|[(,=:[!&|?{};+\-*%<>~^\n]|\b(?:return|typeof|case|in|of|do|else|void|throw|await|yield))\s*$/

const tokens =
  /(?<comment>\/\/[^\n]*|\/\*[\s\S]*?(?:\*\/|$))|(?<quoted>'(?:\\[\s\S]|[^'\\\n])*'|"(?:\\[\s\S]|[^"\\\n])*")|[`{}/]/g
const regexLiteral = /\/(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\[\n])+\//y
const templatePart = /(?:\\[\s\S]|\$(?!\{)|[^\\`$])*(?<end>`|\$\{|$)/y

const blank = (text: string): string => text.replace(/[^\n]/g, ' ')

/**
 * The text with comments, strings and regular expressions blanked out: every character that is left stands where it
 * stood.
 */
export function codeOf(text: string): string {
  let code = ''
  let at = 0
  /** For each open template the braces open inside its current `${}`. */
  const templates: number[] = []
  const keepTo = (end: number): void => {
    code += text.slice(at, end)
    at = end
  }
  const blankTo = (end: number): void => {
    code += blank(text.slice(at, end))
    at = end
  }
  const readTemplate = (from: number): void => {
    templatePart.lastIndex = from
    const match = templatePart.exec(text)
    if (match?.groups?.end === '${') templates.push(0)
    blankTo(templatePart.lastIndex)
  }
  while (true) {
    tokens.lastIndex = at
    const match = tokens.exec(text)
    if (!match) break
    keepTo(match.index)
    const { comment, quoted } = match.groups ?? {}
    const [token] = match
    const end = match.index + token.length
    if (comment !== undefined || quoted !== undefined) blankTo(end)
    else if (token === '`') readTemplate(end)
    else if (token !== '/') {
      const depth = templates.at(-1)
      if (token === '}' && depth === 0) {
        templates.pop()
        readTemplate(end)
      } else {
        if (depth !== undefined) templates[templates.length - 1] = depth + (token === '{' ? 1 : -1)
        keepTo(end)
      }
    } else {
      regexLiteral.lastIndex = at
      const isRegex = beforeRegex.test(code.slice(-20)) && regexLiteral.test(text)
      if (isRegex) blankTo(regexLiteral.lastIndex)
      else keepTo(end)
    }
  }
  keepTo(text.length)
  return code
}

const importPattern = /^[ \t]*(?:import|export)\b(?:[^'"`;]*?\bfrom)?\s*['"]([^'"\n]+)['"]/gm
const dynamicPattern = /\bimport\(\s*['"]([^'"\n]+)['"]/g

/** What a file imports, in any way and for types too, as it is written there. */
export const importsOf = (text: string): string[] =>
  [importPattern, dynamicPattern].flatMap((pattern) => [...text.matchAll(pattern)].map((match) => match[1] as string))

/** Texts that look like the path of a source file: a worker, a program to start. */
export const namedFilesOf = (text: string): string[] =>
  [...text.matchAll(/['"`]([\w./-]+\.(?:ts|mjs))['"`]/g)].map((match) => match[1] as string)

/** The number of the line at an offset, from 1. */
export const lineAt = (text: string, offset: number): number => text.slice(0, offset).split('\n').length
