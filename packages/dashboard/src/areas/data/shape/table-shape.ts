/** The declaration of a table, and changes of it: what they make of it, and what is wrong with them. Pure. */
import type { FieldDescription, TableDescription } from '../../../app/queries.ts'

/** A field as the configuration declares it, without the built-in ones. */
export interface ShapeField extends FieldDescription {
  readonly name: string
}

export interface TableShape {
  readonly fields: readonly ShapeField[]
  readonly indexes: TableDescription['indexes']
  readonly search: readonly string[]
  /** The weights of searched fields; absent where they have none. */
  readonly weights?: Readonly<Record<string, number>>
}

export type ShapeChange =
  | { readonly kind: 'add'; readonly field: ShapeField }
  | { readonly kind: 'rename'; readonly from: string; readonly to: string }
  | { readonly kind: 'remove'; readonly name: string }
  | { readonly kind: 'index'; readonly fields: readonly string[]; readonly unique: boolean }
  | { readonly kind: 'unindex'; readonly fields: readonly string[] }

const builtIn: ReadonlySet<string> = new Set(['id', 'createdAt', 'updatedAt'])

export function shapeOf({ fields, indexes, search, searchOptions }: TableDescription): TableShape {
  return {
    fields: Object.entries(fields).flatMap(([name, field]) => (builtIn.has(name) ? [] : [{ ...field, name }])),
    indexes,
    search,
    ...(searchOptions ? { weights: searchOptions.weights } : {}),
  }
}

const isSameList = (one: readonly string[], other: readonly string[]): boolean => one.join() === other.join()

/** Names everywhere in the table, under another name, or without it where that is null. */
function renamed(shape: TableShape, from: string, to: string | null): TableShape {
  const names = (list: readonly string[]): readonly string[] =>
    list.flatMap((name) => (name !== from ? [name] : to === null ? [] : [to]))
  const { weights } = shape
  return {
    fields: shape.fields.flatMap((field) =>
      field.name !== from ? [field] : to === null ? [] : [{ ...field, name: to }],
    ),
    indexes: shape.indexes.flatMap((index) =>
      to === null && index.fields.includes(from) ? [] : [{ ...index, fields: names(index.fields) }],
    ),
    search: names(shape.search),
    ...(weights ? { weights: to === null ? weights : { ...weights, [to]: weights[from] ?? 1 } } : {}),
  }
}

function changed(shape: TableShape, change: ShapeChange): TableShape {
  switch (change.kind) {
    case 'add':
      return { ...shape, fields: [...shape.fields, change.field] }
    case 'rename':
      return renamed(shape, change.from, change.to)
    case 'remove':
      return renamed(shape, change.name, null)
    case 'index':
      return { ...shape, indexes: [...shape.indexes, { fields: change.fields, unique: change.unique }] }
    case 'unindex':
      return { ...shape, indexes: shape.indexes.filter(({ fields }) => !isSameList(fields, change.fields)) }
  }
}

export const shapeWith = (shape: TableShape, changes: readonly ShapeChange[]): TableShape =>
  changes.reduce(changed, shape)

/**
 * The shape between the two patches of a renaming: the field under both names, neither of them required, so that the
 * values can be copied. Equal to the final one where nothing is renamed.
 */
export function shapeBetween(shape: TableShape, changes: readonly ShapeChange[]): TableShape {
  const renamings = changes.filter((one) => one.kind === 'rename')
  const others = changes.filter((one) => one.kind !== 'rename')
  if (renamings.length === 0) return shapeWith(shape, others)
  const names = new Map(renamings.map(({ from, to }) => [from, to]))
  const copied = shape.fields.flatMap((field): readonly ShapeField[] => {
    const to = names.get(field.name)
    const optional = { ...field, required: false }
    return to === undefined ? [field] : [optional, { ...optional, name: to }]
  })
  return shapeWith({ ...shape, fields: copied }, others)
}

const namePattern = /^[A-Za-z][A-Za-z0-9_]*$/
const nameCharsMax = 48

/**
 * What is wrong with a name for a field; null for a good one. A name that was removed is not free: its values would be
 * those of the new field. The server checks the configuration completely.
 */
function nameProblem(before: TableShape, current: TableShape, name: string): string | null {
  const taken = [...builtIn, ...[...before.fields, ...current.fields].map((field) => field.name)]
  if (!namePattern.test(name)) return 'needs a letter, then letters, digits and “_”'
  if (name.length > nameCharsMax) return `has at most ${nameCharsMax} characters`
  if (taken.some((one) => one.toLowerCase() === name.toLowerCase())) return 'is the name of another field'
  return null
}

/** Why a change does not apply to the shape that earlier ones have made of the declared one; null where it does. */
export function problemOf(before: TableShape, current: TableShape, change: ShapeChange): string | null {
  const has = (name: string, shape = current): boolean => shape.fields.some((field) => field.name === name)
  const named = (name: string): string | null => {
    const problem = nameProblem(before, current, name)
    return problem === null ? null : `The name ${problem}.`
  }
  switch (change.kind) {
    case 'add':
      return named(change.field.name)
    case 'rename':
      return has(change.from) && has(change.from, before) ? named(change.to) : 'Choose a field of the table.'
    case 'remove':
      return has(change.name) ? null : 'Choose a field of the table.'
    case 'index':
      return indexProblem(change.fields, current, has)
    case 'unindex':
      return current.indexes.some(({ fields }) => isSameList(fields, change.fields)) ? null : 'Choose an index.'
  }
}

function indexProblem(
  fields: readonly string[],
  { indexes }: TableShape,
  has: (name: string) => boolean,
): string | null {
  const missing = fields.find((name) => !builtIn.has(name) && !has(name))
  if (fields.length === 0) return 'Name the fields of the index, with commas between them.'
  if (missing !== undefined) return `There is no field ${missing}.`
  return indexes.some((index) => isSameList(index.fields, fields)) ? 'There is such an index.' : null
}

/** Changes of a URL: those that fit one after the other. */
export function parseChanges(text: string | null, shape: TableShape): readonly ShapeChange[] {
  const kept: ShapeChange[] = []
  let current = shape
  for (const one of parseList(text)) {
    if (!isChange(one) || problemOf(shape, current, one) !== null) continue
    kept.push(one)
    current = changed(current, one)
  }
  return kept
}

/** More make no patch that is read. */
export const changesMax = 50

function parseList(text: string | null): readonly unknown[] {
  try {
    const list: unknown = JSON.parse(text ?? '[]')
    return Array.isArray(list) ? list.slice(0, changesMax) : []
  } catch {
    return []
  }
}

const isTexts = (value: unknown): value is readonly string[] =>
  Array.isArray(value) && value.every((one) => typeof one === 'string')

/** Of a URL that was edited by hand too. */
function isChange(value: unknown): value is ShapeChange {
  if (typeof value !== 'object' || value === null) return false
  const { kind, field, from, to, name, fields } = value as Readonly<Record<string, unknown>>
  if (kind === 'add') {
    const { name, type } = (field ?? {}) as Readonly<Record<string, unknown>>
    return typeof name === 'string' && typeof type === 'string'
  }
  if (kind === 'rename') return typeof from === 'string' && typeof to === 'string'
  if (kind === 'remove') return typeof name === 'string'
  return (kind === 'index' || kind === 'unindex') && isTexts(fields)
}
