/** Documents of a package: copies of the repository's, whose links lead to files of the package or are plain text. */
import { cpSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join, posix, relative } from 'node:path'

/** Path in the package by path in the repository. A folder stands for all of its documents. */
export type Documents = Readonly<Record<string, string>>

export function copyDocuments(root: string, documents: Documents, out: string): void {
  const paths = new Map(Object.entries(documents).flatMap(([from, to]) => expand(root, from, to)))
  for (const [from, to] of paths) {
    mkdirSync(dirname(join(out, to)), { recursive: true })
    if (from.endsWith('.md'))
      writeFileSync(join(out, to), redirectLinks(readFileSync(join(root, from), 'utf8'), from, paths))
    else cpSync(join(root, from), join(out, to))
  }
}

function expand(root: string, from: string, to: string): [string, string][] {
  if (!statSync(join(root, from)).isDirectory()) return [[from, to]]
  return readdirSync(join(root, from)).flatMap((name) => expand(root, posix.join(from, name), posix.join(to, name)))
}

/** A document with its links as they must be in the package; `paths` is by path in the repository. */
export function redirectLinks(markdown: string, from: string, paths: ReadonlyMap<string, string>): string {
  const folder = posix.dirname(paths.get(from) ?? from)
  return markdown.replace(/(?<!!)\[([^\]\n]*)\]\(([^()\s]+)\)/g, (link, text: string, target: string) => {
    if (/^(?:[a-z]+:|#)/.test(target)) return link
    const [path = '', anchor] = target.split('#')
    const packed = paths.get(posix.join(posix.dirname(from), path))
    if (packed === undefined) return text
    return `[${text}](${relative(folder, packed)}${anchor === undefined ? '' : `#${anchor}`})`
  })
}
