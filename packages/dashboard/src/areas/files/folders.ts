/** Folders are the parts of keys between slashes; the server stores none. */
import type { ListedFile } from './requests.ts'

export type Entry =
  | { readonly kind: 'folder'; readonly name: string; readonly prefix: string; readonly count: number }
  | { readonly kind: 'file'; readonly name: string; readonly file: ListedFile }

/** What is directly in the folder of `prefix`: folders first, then files, each in the order of the keys. */
export function entriesOf(files: readonly ListedFile[], prefix: string): readonly Entry[] {
  const folders = new Map<string, number>()
  const direct: Entry[] = []
  for (const file of files) {
    const rest = file.key.slice(prefix.length)
    const slash = rest.indexOf('/')
    if (slash < 0) direct.push({ kind: 'file', name: rest, file })
    else {
      const name = rest.slice(0, slash)
      folders.set(name, (folders.get(name) ?? 0) + 1)
    }
  }
  const listed = [...folders].map(
    ([name, count]): Entry => ({ kind: 'folder', name, prefix: `${prefix}${name}/`, count }),
  )
  return [...listed, ...direct]
}

/** The folders from the bucket to a prefix: `a/b/` has `a` with `a/` and `b` with `a/b/`. */
export function stepsOf(prefix: string): readonly { readonly name: string; readonly prefix: string }[] {
  const names = prefix.split('/').slice(0, -1)
  return names.map((name, at) => ({ name, prefix: `${names.slice(0, at + 1).join('/')}/` }))
}
