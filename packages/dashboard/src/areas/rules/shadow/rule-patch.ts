/** The change of a rule of the configuration as lines and as a patch. */
import { type DiffLine, diffLines, patchText } from '../../../design/patch/line-diff.ts'

/** All lines of the rule; `path` names its place, such as `databases.shared.tables.posts.access.update.after`. */
export function rulePatch(
  path: string,
  before: string,
  after: string,
): { readonly lines: readonly DiffLine[]; readonly text: string } {
  const name = path.slice(path.lastIndexOf('.') + 1)
  return {
    lines: diffLines(before, after),
    text: patchText(path, [diffLines(`${name}: ${before},`, `${name}: ${after},`)]),
  }
}
