/**
 * A question about access in its three forms: the fields of the form, the parameters of the URL, by which it can be
 * shared, and the body of the request. Without React, so that tests call it.
 */
import { parseJson, parseObject } from '../../text/json.ts'
import { shellArgument } from '../../text/shell-argument.ts'

export const operations = ['list', 'get', 'create', 'update', 'delete'] as const
export type Operation = (typeof operations)[number]

export const callerKinds = ['anonymous', 'user', 'claims'] as const
export type CallerKind = (typeof callerKinds)[number]

/** What the form holds: texts, valid or not. */
export interface Draft {
  readonly namespace: string
  readonly instance: string
  readonly table: string
  readonly operation: Operation
  readonly caller: CallerKind
  readonly userId: string
  /** JSON of the properties of a caller. */
  readonly claims: string
  /** Whether the record is a stored one, or `row` stands for it. */
  readonly source: 'id' | 'row'
  readonly id: string
  /** JSON of a record, or of the change of a stored one. */
  readonly row: string
  /** JSON of the conditions of a list. */
  readonly filter: string
  readonly sort: string
}

/** The body of `POST /api/rules/explain`. */
export interface Question {
  readonly namespace: string
  readonly instanceId?: string
  readonly table: string
  readonly operation: Operation
  readonly caller:
    | { readonly kind: 'anonymous' }
    | { readonly kind: 'user'; readonly id: string }
    | { readonly kind: 'claims'; readonly auth: object }
  readonly id?: string
  readonly row?: object
  readonly filter?: object
  readonly sort?: string
}

const oneOf = <Value extends string>(values: readonly Value[], text: string | null, otherwise: Value): Value =>
  values.find((value) => value === text) ?? otherwise

/** The caller that a text such as `user:ID` or `claims:{…}` names; anonymous for any other. */
export function callerOf(text: string): Pick<Draft, 'caller' | 'userId' | 'claims'> {
  const [, kind = '', rest = ''] = /^(user|claims):(.*)$/s.exec(text) ?? []
  const caller = oneOf(callerKinds, kind, 'anonymous')
  return { caller, userId: caller === 'user' ? rest : '', claims: caller === 'claims' ? rest : '' }
}

/** The draft that the parameters of a URL describe; what they lack is empty. */
export function draftOf(get: (name: string) => string | null): Draft {
  const textOf = (name: string): string => get(name) ?? ''
  return {
    namespace: textOf('namespace'),
    instance: textOf('instance'),
    table: textOf('table'),
    operation: oneOf(operations, get('operation'), 'list'),
    ...callerOf(textOf('as')),
    source: get('id') === null && get('row') !== null ? 'row' : 'id',
    id: textOf('id'),
    row: textOf('row'),
    filter: textOf('filter'),
    sort: textOf('sort'),
  }
}

/** Whether the operation is about a record that is stored, or stands for one. */
export const hasRecord = ({ operation }: Pick<Draft, 'operation'>): boolean => operation !== 'create'

/** Whether a text of a record is part of the question. */
export const hasRow = ({ operation, source }: Pick<Draft, 'operation' | 'source'>): boolean =>
  operation === 'create' || operation === 'update' || source === 'row'

const hasId = (draft: Draft): boolean => hasRecord(draft) && draft.source === 'id'

/** The text that `callerOf` parses. */
export const callerText = ({ caller, userId, claims }: Pick<Draft, 'caller' | 'userId' | 'claims'>): string => {
  if (caller === 'anonymous') return 'anonymous'
  return `${caller}:${caller === 'user' ? userId : claims}`
}

/** The parameters of the URL. What the question does not have is null, so that it is removed. */
export function paramsOf(draft: Draft): Readonly<Record<string, string | null>> {
  const isList = draft.operation === 'list'
  const params = {
    namespace: draft.namespace,
    instance: draft.instance,
    table: draft.table,
    operation: draft.operation,
    as: callerText(draft),
    id: hasId(draft) ? draft.id.trim() : '',
    row: hasRow(draft) ? draft.row.trim() : '',
    filter: isList ? draft.filter.trim() : '',
    sort: isList ? draft.sort.trim() : '',
  }
  return Object.fromEntries(Object.entries(params).map(([name, value]) => [name, value === '' ? null : value]))
}

/** How long a text may be in the URL, so that all of it stays below what servers accept as a request line. */
const encodedMax = 4000

function problemOf(text: string, parse: (text: string) => string | null = objectProblem): string | null {
  if (text.trim() === '') return null
  if (new URLSearchParams({ text }).toString().length > encodedMax)
    return 'Too long for an address that can be shared. Use “plinth rules explain” instead.'
  return parse(text)
}

function objectProblem(text: string): string | null {
  const parsed = parseObject(text)
  return 'problem' in parsed ? parsed.problem : null
}

function filterProblem(text: string): string | null {
  const parsed = parseJson(text)
  if ('problem' in parsed) return parsed.problem
  return Array.isArray(parsed.value) ? null : 'Must be a list of conditions, such as [["published", "==", true]].'
}

export interface Problems {
  readonly claims: string | null
  readonly row: string | null
  readonly filter: string | null
}

/** What is wrong with the texts that are part of the question. */
export const problemsOf = (draft: Draft): Problems => ({
  claims: draft.caller === 'claims' ? problemOf(draft.claims) : null,
  row: hasRow(draft) ? problemOf(draft.row) : null,
  filter: draft.operation === 'list' ? problemOf(draft.filter, filterProblem) : null,
})

/** What the question needs before it is complete; null if nothing. */
export function missingOf(draft: Draft, isDynamic: boolean): string | null {
  if (draft.namespace === '' || draft.table === '') return 'Choose a table.'
  if (isDynamic && draft.instance.trim() === '') return `Name the instance of ${draft.namespace}, such as a tenant.`
  if (draft.caller === 'user' && draft.userId === '') return 'Choose the user.'
  if (draft.caller === 'claims' && draft.claims.trim() === '') return 'Paste the claims of the caller.'
  const needsRecord = draft.operation !== 'list' && hasRecord(draft)
  if (needsRecord && draft.source === 'id' && draft.id.trim() === '') return 'Name the record by its id, or paste one.'
  if (needsRecord && draft.source === 'row' && draft.row.trim() === '') return 'Paste the record.'
  return null
}

/** The object that a text is. Callers have checked `problemsOf` before. */
const objectOf = (text: string): object => JSON.parse(text) as object

/** The caller in the body of a request. Throws for claims that are no JSON. */
export function callerBody({
  caller,
  userId,
  claims,
}: Pick<Draft, 'caller' | 'userId' | 'claims'>): Question['caller'] {
  if (caller === 'anonymous') return { kind: 'anonymous' }
  return caller === 'user' ? { kind: 'user', id: userId } : { kind: 'claims', auth: objectOf(claims) }
}

/** The body of the request; null while the draft is incomplete or invalid. */
export function questionOf(draft: Draft, isDynamic: boolean): Question | null {
  if (missingOf(draft, isDynamic) !== null) return null
  if (Object.values(problemsOf(draft)).some((problem) => problem !== null)) return null
  const params = paramsOf(draft)
  return {
    namespace: draft.namespace,
    ...(isDynamic && { instanceId: draft.instance.trim() }),
    table: draft.table,
    operation: draft.operation,
    caller: callerBody(draft),
    ...(params.id && { id: params.id }),
    ...(params.row && { row: objectOf(params.row) }),
    ...(params.filter && { filter: objectOf(params.filter) }),
    ...(params.sort && { sort: params.sort }),
  }
}

/** The command that asks the same question from a shell. Values follow `=`, so that none is taken for an option. */
export function commandOf({
  namespace,
  instanceId,
  table,
  operation,
  caller,
  id,
  row,
  filter,
  sort,
}: Question): string {
  const as =
    caller.kind === 'anonymous'
      ? 'anonymous'
      : caller.kind === 'user'
        ? `user:${caller.id}`
        : `claims:${JSON.stringify(caller.auth)}`
  const options = Object.entries({
    instance: instanceId,
    id,
    row: row && JSON.stringify(row),
    filter: filter && JSON.stringify(filter),
    sort,
    as,
  }).flatMap(([name, value]) => (value === undefined ? [] : [shellArgument(`--${name}=${value}`)]))
  return ['npx plinth rules explain', shellArgument(namespace), shellArgument(table), operation, ...options].join(' ')
}
