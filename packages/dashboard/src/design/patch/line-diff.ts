/** Two texts line by line: what was removed, added and kept, in the order of an edit. */

export interface DiffLine {
  readonly kind: 'same' | 'removed' | 'added'
  readonly text: string
}

/** Lines that are compared; longer texts are shown as removed and added as a whole. */
const linesMax = 600

/** By the longest common subsequence of their lines. */
export function diffLines(before: string, after: string): readonly DiffLine[] {
  const [old, next] = [before.split('\n'), after.split('\n')]
  const all = (kind: DiffLine['kind'], texts: readonly string[]): DiffLine[] => texts.map((text) => ({ kind, text }))
  if (old.length > linesMax || next.length > linesMax) return [...all('removed', old), ...all('added', next)]
  /** Of the rest from each pair of lines on. */
  const lengths = Array.from({ length: old.length + 1 }, () => new Array<number>(next.length + 1).fill(0))
  const at = (i: number, j: number): number => lengths[i]?.[j] ?? 0
  for (let i = old.length - 1; i >= 0; i--)
    for (let j = next.length - 1; j >= 0; j--)
      (lengths[i] as number[])[j] = old[i] === next[j] ? at(i + 1, j + 1) + 1 : Math.max(at(i + 1, j), at(i, j + 1))
  const lines: DiffLine[] = []
  let [i, j] = [0, 0]
  while (i < old.length || j < next.length) {
    if (i < old.length && j < next.length && old[i] === next[j]) {
      lines.push({ kind: 'same', text: old[i] as string })
      i++
      j++
    } else if (i < old.length && (j === next.length || at(i + 1, j) >= at(i, j + 1)))
      lines.push({ kind: 'removed', text: old[i++] as string })
    else lines.push({ kind: 'added', text: next[j++] as string })
  }
  return lines
}

/** Unchanged lines that are kept beside changed ones. */
const contextLines = 2

/** The changed lines with those beside them, in parts that follow each other; none where nothing has changed. */
export function changedParts(lines: readonly DiffLine[]): readonly (readonly DiffLine[])[] {
  const parts: DiffLine[][] = []
  let end = 0
  for (const [at, { kind }] of lines.entries()) {
    if (kind === 'same') continue
    const from = Math.max(end, at - contextLines)
    if (from > end || parts.length === 0) parts.push([])
    const to = Math.min(lines.length, at + contextLines + 1)
    parts.at(-1)?.push(...lines.slice(from, to))
    end = Math.max(end, to)
  }
  return parts
}

const marks = { same: ' ', removed: '-', added: '+' } as const

/** A change as a patch for a person or an editor: `path` names its place in the configuration. */
export const patchText = (path: string, parts: readonly (readonly DiffLine[])[]): string =>
  [
    '--- plinth.config.ts',
    '+++ plinth.config.ts',
    ...parts.flatMap((lines) => [`@@ ${path} @@`, ...lines.map(({ kind, text }) => `${marks[kind]}${text}`)]),
  ].join('\n')
