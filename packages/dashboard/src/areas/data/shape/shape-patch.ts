/** Changes of a table as patches of the configuration, in its own notation, and what else they need. Pure. */
import { changedParts, type DiffLine, diffLines } from '../../../design/patch/line-diff.ts'
import { shellArgument } from '../../../text/shell-argument.ts'
import type { TableAddress } from '../location.ts'
import { type ShapeChange, type ShapeField, shapeBetween, shapeWith, type TableShape } from './table-shape.ts'

/** A value in TypeScript, with the quotes of the documentation. */
function literal(value: unknown): string {
  if (typeof value === 'string')
    return `'${JSON.stringify(value).slice(1, -1).replaceAll('\\"', '"').replaceAll("'", "\\'")}'`
  return Array.isArray(value) ? `[${value.map(literal).join(', ')}]` : JSON.stringify(value)
}

const optionNames = ['default', 'min', 'max', 'pattern', 'enum', 'references', 'index'] as const

/** The text of a computed field's expression is not known. */
function fieldText(field: ShapeField): string {
  const options = [
    `type: ${literal(field.type)}`,
    ...(field.readOnly ? ['computed: …'] : []),
    ...(field.required ? ['required: true'] : []),
    ...(field.unique ? ['unique: true'] : []),
    ...optionNames.flatMap((name) => (field[name] === undefined ? [] : [`${name}: ${literal(field[name])}`])),
  ]
  return `  ${field.name}: { ${options.join(', ')} },`
}

/** The members of the table's declaration that a change concerns. */
export function shapeText({ fields, indexes, search, weights }: TableShape): string {
  const hidden = fields.filter((field) => field.hidden).map(({ name }) => name)
  const searched = search.map((field) => {
    const weight = weights?.[field] ?? 1
    return weight === 1 ? literal(field) : `{ field: ${literal(field)}, weight: ${weight} }`
  })
  return [
    'schema: {',
    ...fields.map(fieldText),
    '},',
    ...(indexes.length === 0 ? [] : ['indexes: [']),
    ...indexes.map((index) => `  { fields: ${literal(index.fields)}${index.unique ? ', unique: true' : ''} },`),
    ...(indexes.length === 0 ? [] : ['],']),
    ...(searched.length === 0 ? [] : [`search: [${searched.join(', ')}],`]),
    ...(hidden.length === 0 ? [] : [`hidden: ${literal(hidden)},`]),
  ].join('\n')
}

/** A patch, or the commands between two of them. */
export type ShapeStep =
  | { readonly kind: 'patch'; readonly path: string; readonly parts: readonly (readonly DiffLine[])[] }
  | { readonly kind: 'commands'; readonly text: string; readonly note: string }

const patchStep = (path: string, before: TableShape, after: TableShape): ShapeStep => ({
  kind: 'patch',
  path,
  parts: changedParts(diffLines(shapeText(before), shapeText(after))),
})

/** Copies the values of renamed fields, a file for each. */
function copyCommands({ namespace, instanceId, table }: TableAddress, changes: readonly ShapeChange[]): string {
  const address = shellArgument(`${instanceId === null ? namespace : `${namespace}/${instanceId}`}.${table}`)
  return changes
    .flatMap((change) =>
      change.kind !== 'rename'
        ? []
        : [
            `plinth export ${address} ${change.from}.csv --format csv --fields id,${change.from}`,
            `plinth import ${address} ${change.from}.csv --map ${change.from}=${change.to} --upsert id`,
          ],
    )
    .join('\n')
}

const accept: ShapeStep = {
  kind: 'commands',
  text: 'plinth migrate --apply',
  note: 'The server refuses a configuration without a field that has values. This drops them for good; stop the server first.',
}

/** What leads from one shape to another, in its order. */
export function shapeSteps(
  address: TableAddress,
  before: TableShape,
  changes: readonly ShapeChange[],
): readonly ShapeStep[] {
  const path = `databases.${address.namespace}.tables.${address.table}`
  const after = shapeWith(before, changes)
  const isRenamed = changes.some(({ kind }) => kind === 'rename')
  const isComputed = (name: string): boolean => before.fields.some((field) => field.name === name && field.readOnly)
  const isLost = changes.some((one) => one.kind === 'remove' && !isComputed(one.name))
  // What is removed stays until the values of renamed fields are copied, so that there is one loss to accept.
  const first = isRenamed
    ? shapeBetween(
        before,
        changes.filter(({ kind }) => kind !== 'remove'),
      )
    : after
  const copy: ShapeStep = {
    kind: 'commands',
    text: copyCommands(address, changes),
    note: 'Copies the values to the new name. Programs that still write the old one have to be changed first.',
  }
  return [
    patchStep(path, before, first),
    ...(isRenamed ? [copy, patchStep(path, first, after)] : []),
    ...(isRenamed || isLost ? [accept] : []),
  ]
}

/** What a person should know before applying the changes. */
export function shapeNotes(changes: readonly ShapeChange[]): readonly string[] {
  const notes = changes.flatMap((change): readonly string[] => {
    if (change.kind === 'add' && change.field.required && change.field.default === undefined)
      return [`${change.field.name} needs a default where the table has records, since they have no value.`]
    if (change.kind === 'add' && change.field.unique && change.field.default !== undefined)
      return [`${change.field.name}: existing records would all get the default, which is not unique.`]
    if (change.kind === 'index' && change.unique)
      return [`${change.fields.join(', ')}: the server refuses the index while records have equal values.`]
    return []
  })
  const gone = changes.flatMap((one) => (one.kind === 'rename' ? [one.from] : one.kind === 'remove' ? [one.name] : []))
  if (gone.length === 0) return notes
  return [...notes, `Rules, functions, computed fields and programs that name ${gone.join(', ')} are not in the patch.`]
}
