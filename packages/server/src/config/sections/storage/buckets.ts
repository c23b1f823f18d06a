/** Buckets as they are declared: names that can stand in paths and scopes, and the definitions that come of them. */
import type { BucketDefinition } from '../../../access/definition.ts'
import { fileBytesMax } from '../../../limits/storage.ts'
import { createdAtField, type Field, type FieldType, type Table } from '../../../query/table.ts'
import type { ConfigIssue } from '../../issues.ts'
import type { WrittenBucket } from '../../shape.ts'
import { membersOf } from '../../shape-parts.ts'

const fieldOf = (name: string, type: FieldType, required = true): Field =>
  Object.freeze({ name, type, required, unique: false })

const fields = [
  fieldOf('key', 'string'),
  fieldOf('size', 'number'),
  fieldOf('contentType', 'string'),
  fieldOf('uploadedBy', 'string', false),
  createdAtField,
]

/** The objects of all buckets as rules see them; metadata supplied by clients is under `customMetadata.`. */
const objectsTable: Table = Object.freeze({
  namespace: '_storage',
  name: 'objects',
  perInstance: false,
  schemaless: true,
  undeclaredPrefix: 'customMetadata.',
  fields: new Map(fields.map((field) => [field.name, field])),
  hidden: new Set<string>(),
  indexes: Object.freeze([]),
  search: Object.freeze([]),
  computed: Object.freeze([]),
})

/** The name stands in paths and in the scopes of service keys. */
const bucketNamePattern = /^[A-Za-z0-9][\w.-]{0,62}$/

/** What is wrong with the names of the buckets; their shape is judged elsewhere. */
export const checkBuckets = (buckets: unknown): ConfigIssue[] =>
  membersOf(buckets)
    .filter(([name]) => !bucketNamePattern.test(name))
    .map(([name]) => ({
      path: ['storage', 'buckets', name],
      message: 'must be a letter or digit, then letters, digits, "_", "." and "-", at most 63 together',
    }))

/** The definition of a bucket in which nothing was found wrong. */
export function createBucket(name: string, written: WrittenBucket): BucketDefinition {
  const { maxFileSize, quota, userQuota, images, access } = written
  const { read, write, delete: remove } = access
  const rules = Object.freeze({
    read,
    insert: write,
    update: Object.freeze({ before: write, after: write }),
    delete: remove,
  })
  return Object.freeze({
    name,
    objects: Object.freeze({ table: objectsTable, access: rules }),
    fileBytesMax: Math.min(maxFileSize ?? fileBytesMax, fileBytesMax),
    quotaBytes: quota ?? null,
    userQuotaBytes: userQuota ?? null,
    images,
  })
}
