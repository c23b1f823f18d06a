/** Checks links between documents: files and headings must exist. */
import { join } from 'node:path/posix'
import type { Repository } from './repository.ts'

const linkPattern = /!?\[[^\]\n]*\]\(([^()\s]+)\)/g
const fence = /^(`{3,})[^\n]*\n[\s\S]*?^\1$/gm

/** The anchor of a heading in rendered documents. */
const anchorOf = (heading: string): string =>
  heading
    .trim()
    .toLowerCase()
    .replace(/[`*]/g, '')
    .replace(/[^\p{L}\p{N}\s_-]/gu, '')
    .replace(/\s/g, '-')

const anchorsOf = (markdown: string): Set<string> =>
  new Set([...markdown.replace(fence, '').matchAll(/^#{1,6} (.*)$/gm)].map((match) => anchorOf(match[1] ?? '')))

export function checkLinks(repository: Repository): string[] {
  const isFolder = (path: string): boolean => [...repository.keys()].some((file) => file.startsWith(`${path}/`))
  return [...repository].flatMap(([path, text]) => {
    if (!path.endsWith('.md')) return []
    const links = [
      ...text
        .replace(fence, '')
        .replace(/`[^`\n]*`/g, '')
        .matchAll(linkPattern),
    ].map((match) => match[1] as string)
    return links.flatMap((link) => {
      if (/^(?:https?:|mailto:)/.test(link)) return []
      const [file = '', anchor] = link.split('#')
      const target = file === '' ? path : join(path, '..', file).replace(/\/$/, '')
      const found = repository.get(target)
      if (found === undefined) return isFolder(target) ? [] : [`${path}: the link ${link} leads nowhere`]
      const isThere = anchor === undefined || anchorsOf(found).has(anchor)
      return isThere ? [] : [`${path}: the link ${link} names a heading that ${target} does not have`]
    })
  })
}
