/** What `namespace.table` or `storage.bucket` in a declaration stands for: where its changes are, and its fields. */
import type { Config } from '../../../config/config.ts'
import { suggest } from '../../../config/issues.ts'
import type { Field, FieldType, Table } from '../../../query/table.ts'

type Row = Readonly<Record<string, unknown>>

export interface HookTarget {
  /** The namespace and the table of its changes in the change log. */
  readonly namespace: string
  readonly name: string
  /** The fields that `where` can name, and those that the API hides. */
  readonly table: Table
  /** The fields of a row in the log; null for any. */
  readonly sentFields: Pick<ReadonlySet<string>, 'has'> | null
  /** Whether the server itself writes the rows. */
  readonly isPlatform: boolean
  /** A row of the log with the fields of `table`. */
  view(row: Row): Row
}

type Targets = Pick<Config, 'namespaces' | 'buckets'>

const fileField = (name: string, type: FieldType): [string, Field] => [
  name,
  { name, type, required: name !== 'uploadedBy', unique: false },
]

const fileFields = new Map([
  fileField('key', 'string'),
  fileField('size', 'number'),
  fileField('httpMetadata', 'json'),
  fileField('customMetadata', 'json'),
  fileField('uploaded', 'datetime'),
  fileField('contentType', 'string'),
  fileField('etag', 'string'),
  fileField('uploadedBy', 'string'),
])

/** Members of the custom metadata are fields of their own. */
const viewOfFile = (row: Row): Row => ({
  ...row,
  ...Object.fromEntries(
    Object.entries(row.customMetadata as Row).map(([name, value]) => [`customMetadata.${name}`, value]),
  ),
})

/** With a namespace called `storage`, its tables are meant and no bucket. A text is the problem of an unknown name. */
export function findHookTarget(address: string, { namespaces, buckets }: Targets): HookTarget | string {
  const [namespace = '', name = ''] = splitAddress(address)
  if (namespace === 'storage' && !namespaces.has(namespace)) {
    const bucket = buckets.get(name)
    if (!bucket) return `there is no bucket "${name}".${suggest(name, buckets.keys())}`
    const { table } = bucket.objects
    const files = { ...table, fields: fileFields }
    return {
      namespace: table.namespace,
      name,
      table: files,
      sentFields: fileFields,
      isPlatform: false,
      view: viewOfFile,
    }
  }
  const tables = namespaces.get(namespace)?.tables
  if (!tables) return `there is no namespace "${namespace}".${suggest(namespace, namespaces.keys())}`
  const declared = tables.get(name)
  if (!declared) return `there is no table "${address}".${suggest(name, tables.keys())}`
  const { table, isPlatform = false } = declared
  const sentFields = table.schemaless ? null : table.fields
  return { namespace, name, table, sentFields, isPlatform, view: (row) => row }
}

/** Names of buckets may have dots. */
export function splitAddress(address: string): readonly [namespace: string, name: string] {
  const dot = address.indexOf('.')
  return [address.slice(0, dot), address.slice(dot + 1)]
}
