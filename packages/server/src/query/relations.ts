/**
 * Relations between the tables of a namespace. Every field with `references` is two of them: from its record to the
 * record that it names, and from that record back to all records that name it.
 */
import type { Table } from './table.ts'

export interface Relation {
  /** The member of a record that holds its related records. */
  readonly name: string
  /** `one`: the record that a field refers to. `many`: the records whose field refers to this one. */
  readonly kind: 'one' | 'many'
  /** Name of the related table, of the same namespace. */
  readonly target: string
  /** A field of the record and one of the related records, which have the same value; `id` on one of the sides. */
  readonly field: string
  readonly targetField: string
}

/** The relations of a table by name. */
export type Relations = ReadonlyMap<string, Relation>

/** A field and the table that it refers to. */
interface Reference {
  readonly field: string
  readonly target: string
}

const referencesOf = (table: Table, isHidden: boolean): Reference[] =>
  [...table.fields.values()].flatMap(({ name, references }) =>
    references !== undefined && table.hidden.has(name) === isHidden ? [{ field: name, target: references }] : [],
  )

/** `authorId` and `author_id` give `author`; any other name itself. */
const shortName = (field: string): string => field.replace(/(?:_id|Id)$/, '') || field

/**
 * The relations of a table. Hidden fields give relations for those only who see hidden fields; the names of the others
 * do not depend on them, so neither names nor their absence reveal that there are any.
 */
export function relationsOf(table: Table, tables: Iterable<Table>, showsHidden: boolean): Relations {
  const relations = new Map<string, Relation>()
  const isField = (name: string, isHidden: boolean): boolean =>
    table.fields.has(name) && (isHidden || !table.hidden.has(name))
  const add = (relation: Relation): void => {
    if (!relations.has(relation.name)) relations.set(relation.name, relation)
  }
  const all = [...tables]
  for (const isHidden of showsHidden ? [false, true] : [false]) {
    const forward = referencesOf(table, isHidden)
    for (const { field, target } of forward) {
      const short = shortName(field)
      const isTaken =
        isField(short, isHidden) ||
        relations.has(short) ||
        forward.some((other) => other.field !== field && shortName(other.field) === short)
      add({ name: isTaken ? field : short, kind: 'one', target, field, targetField: 'id' })
    }
    for (const other of all) {
      const backward = referencesOf(other, isHidden).filter(({ target }) => target === table.name)
      const isTaken = isField(other.name, isHidden) || relations.has(other.name) || backward.length > 1
      for (const { field } of backward) {
        const name = isTaken ? `${other.name}.${field}` : other.name
        add({ name, kind: 'many', target: other.name, field: 'id', targetField: field })
      }
    }
  }
  return relations
}
