/** What hooks return in place of a file: the same file, of which they may change the custom metadata. */
import { ApiError } from '../../../errors.ts'
import type { HookedRow } from '../../before-hooks.ts'
import { type Metadata, parseMetadata } from '../metadata.ts'
import type { StoredObject } from '../object-rows.ts'
import { toFile } from '../schemas.ts'

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const isSame = (one: unknown, other: unknown): boolean =>
  one === other || JSON.stringify(one ?? null) === JSON.stringify(other ?? null)

const problemOf = ({ message, data }: ApiError): string =>
  data
    ? Object.entries(data)
        .map(([name, { message: problem }]) => `${name}: ${problem}`)
        .join('; ')
    : message

/** The custom metadata to store. Throws the error of the hook for anything but the same file with other metadata. */
export function parseHookedFile(proposed: StoredObject, { row, fail }: HookedRow): Metadata {
  if (!isObject(row)) throw fail('It must return an object, the file to store, or nothing')
  const file: Readonly<Record<string, unknown>> = toFile(proposed)
  for (const name of new Set([...Object.keys(file), ...Object.keys(row)]))
    if (name !== 'customMetadata' && !isSame(file[name], row[name]))
      throw fail(`${name}: cannot be changed; it must return the whole file: { ...row, customMetadata: { … } }`)
  try {
    return parseMetadata(row.customMetadata, 'customMetadata')
  } catch (error) {
    throw error instanceof ApiError ? fail(problemOf(error)) : error
  }
}
