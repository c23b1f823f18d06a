/** The change of a rule of the configuration, line by line. */
import { type DiffLine, diffLines } from '../../../design/patch/line-diff.ts'

/** `path` names its place, such as `databases.shared.tables.posts.access.update.after`. */
export function rulePatch(path: string, before: string, after: string): readonly DiffLine[] {
  const name = path.slice(path.lastIndexOf('.') + 1)
  return diffLines(`${name}: ${before},`, `${name}: ${after},`)
}
