/** What hooks return in place of a file: the same file, of which they may change the custom metadata. */
import { isJsonObject } from '../../../base/text/json.ts'
import { ApiError } from '../../../errors.ts'
import type { HookedRow } from '../../before-hooks.ts'
import { isSameValue, problemOf } from '../../hooked-values.ts'
import { type Metadata, parseMetadata } from '../metadata.ts'
import type { StoredObject } from '../object-rows.ts'
import { toFile } from '../schemas.ts'

/** The custom metadata to store. Throws the error of the hook for anything but the same file with other metadata. */
export function parseHookedFile(proposed: StoredObject, { row, fail }: HookedRow): Metadata {
  if (!isJsonObject(row)) throw fail('It must return an object, the file to store, or nothing')
  const file: Readonly<Record<string, unknown>> = toFile(proposed)
  for (const name of new Set([...Object.keys(file), ...Object.keys(row)]))
    if (name !== 'customMetadata' && !isSameValue(file[name], row[name]))
      throw fail(`${name}: cannot be changed; it must return the whole file: { ...row, customMetadata: { … } }`)
  try {
    return parseMetadata(row.customMetadata, 'customMetadata')
  } catch (error) {
    throw error instanceof ApiError ? fail(problemOf(error)) : error
  }
}
