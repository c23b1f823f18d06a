/** The generated reference: each file with the text that it is to have. */
import { writeErrors } from './errors.ts'
import { readModel } from './model.ts'
import { writeRealtime } from './realtime.ts'
import { writeSchema } from './schema.ts'

/** Paths below `root`, the folder of the repository, to contents. */
export async function writeReference(root: string): Promise<ReadonlyMap<string, string>> {
  const model = await readModel(root)
  return new Map([
    ['docs/reference/errors.md', writeErrors()],
    ['docs/reference/realtime.md', writeRealtime(model)],
    ['docs/reference/realtime.schema.json', writeSchema(model)],
  ])
}
