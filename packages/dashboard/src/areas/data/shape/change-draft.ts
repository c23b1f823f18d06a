/** A change of a table while it is typed. */
import type { FieldType } from '../../../app/queries.ts'
import { parseJson } from '../../../text/json.ts'
import type { ShapeChange, ShapeField } from './table-shape.ts'

export interface ChangeDraft {
  readonly kind: ShapeChange['kind']
  /** The name of a new field, the new one of a renamed field, or the fields of an index with commas. */
  readonly name: string
  /** The field or the index that there is. */
  readonly chosen: string
  readonly type: FieldType
  readonly required: boolean
  readonly unique: boolean
  readonly hidden: boolean
  /** The default: a text as it is, any other value as JSON. */
  readonly defaultText: string
}

export const emptyDraft: ChangeDraft = {
  kind: 'add',
  name: '',
  chosen: '',
  type: 'string',
  required: false,
  unique: false,
  hidden: false,
  defaultText: '',
}

export const canBeUnique = (type: FieldType): boolean => type !== 'json' && type !== 'geo'

function defaultOf({ type, defaultText }: ChangeDraft): { readonly value: unknown } | { readonly problem: string } {
  if (defaultText.trim() === '') return { value: undefined }
  const isText = type === 'string' || type === 'text' || type === 'datetime'
  return isText ? { value: defaultText } : parseJson(defaultText)
}

function fieldOf(draft: ChangeDraft, value: unknown): ShapeField {
  const { name, type, required, unique, hidden } = draft
  return {
    name: name.trim(),
    type,
    required,
    unique: unique && canBeUnique(type),
    ...(value === undefined ? {} : { default: value }),
    ...(hidden ? { hidden } : {}),
  }
}

/** The names of fields with commas between them. */
const namesOf = (text: string): readonly string[] =>
  text
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '')

/** The change of a draft, or what is wrong with its default. */
export function draftedChange(draft: ChangeDraft): { readonly change: ShapeChange } | { readonly problem: string } {
  switch (draft.kind) {
    case 'add': {
      const parsed = defaultOf(draft)
      return 'problem' in parsed ? parsed : { change: { kind: 'add', field: fieldOf(draft, parsed.value) } }
    }
    case 'rename':
      return { change: { kind: 'rename', from: draft.chosen, to: draft.name.trim() } }
    case 'remove':
      return { change: { kind: 'remove', name: draft.chosen } }
    case 'index':
      return { change: { kind: 'index', fields: namesOf(draft.name), unique: draft.unique } }
    case 'unindex':
      return { change: { kind: 'unindex', fields: namesOf(draft.chosen) } }
  }
}
