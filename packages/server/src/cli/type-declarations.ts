/**
 * Writes the type of a configuration as a declaration file without imports, for programs that cannot import the
 * configuration itself. Its shape is that of `typeof config`, with what clients need of it: a table's fields without
 * hidden ones, and names. What handlers of rooms take and return is not known at run time and is `any`.
 */
import type { Config } from '../config/config.ts'
import {
  describeSchema,
  type FieldDescription,
  type SchemaDescription,
  type TableDescription,
} from '../features/system/schema.ts'
import type { FunctionOutline } from '../http/pages/openapi-functions.ts'
import { builtInFieldNames } from '../query/table.ts'
import { typeOfSchema } from './schema-types.ts'

/** What a server's `/api/schema` shows, and names that only the configuration contains. */
export interface TypeSource extends SchemaDescription {
  readonly broadcasts?: readonly string[]
  readonly kv?: readonly string[]
  readonly vector?: readonly string[]
  readonly sql?: readonly string[]
}

export const describeTypes = (config: Config, functions: readonly FunctionOutline[]): TypeSource => ({
  ...describeSchema(config, functions),
  broadcasts: config.broadcasts.map(({ name, isPrefix }) => (isPrefix ? `${name}*` : name)),
  kv: [...config.kv.keys()],
  vector: [...config.vector.keys()],
  sql: [...config.sql.keys()],
})

/** A type in source form: text, or members by name. */
type Node = string | { readonly [name: string]: Node }

const literal = (value: unknown): string => JSON.stringify(value)

/** Defaults that are lists or objects matter only in that there is one. */
const defaultOf = (value: unknown): string => (typeof value === 'object' ? 'object' : literal(value))

const nodeOf = <T>(members: Readonly<Record<string, T>>, map: (value: T, name: string) => Node): Node =>
  Object.fromEntries(Object.entries(members).map(([name, value]) => [name, map(value, name)]))

function nodeOfField({ type, required, default: value, enum: values, references, readOnly }: FieldDescription): Node {
  return {
    type: literal(type),
    ...(required ? { required: 'true' } : {}),
    ...(value === undefined || value === null ? {} : { default: defaultOf(value) }),
    ...(references === undefined ? {} : { references: literal(references) }),
    ...(readOnly ? { computed: 'true' } : {}),
    ...(values ? { enum: `readonly [${values.map(literal).join(', ')}]` } : {}),
  }
}

function nodeOfTable({ schemaless, fields }: TableDescription): Node {
  if (schemaless) return {}
  const declared = Object.entries(fields).filter(([name]) => !builtInFieldNames.has(name))
  return { schema: nodeOf(Object.fromEntries(declared), nodeOfField) }
}

function nodeOfNamespace(tables: SchemaDescription['tables'], namespace: string, instance: boolean): Node {
  const own = Object.values(tables).filter((table) => table.namespace === namespace)
  return {
    ...(instance ? { instance: 'true' } : {}),
    tables: Object.fromEntries(own.map((table) => [table.name, nodeOfTable(table)])),
  }
}

const nodeOfNames = (names: readonly string[]): Node => Object.fromEntries(names.map((name) => [name, {}]))

const nodeOfRooms = (actions: readonly string[]): Node => ({
  actions: Object.fromEntries(actions.map((name) => [name, '(room: never, player: never, payload: any) => any'])),
})

/** A section, if it has members. */
const section = (name: string, members: Node): Readonly<Record<string, Node>> =>
  Object.keys(members).length === 0 ? {} : { [name]: members }

const nodeOfSource = ({ tables, namespaces, buckets, rooms, functions: _, ...others }: TypeSource): Node => ({
  ...section(
    'databases',
    nodeOf(namespaces, ({ instance }, name) => nodeOfNamespace(tables, name, instance)),
  ),
  ...(buckets.length === 0 ? {} : { storage: { buckets: nodeOfNames(buckets) } }),
  ...section(
    'rooms',
    nodeOf(rooms, ({ actions }) => nodeOfRooms(actions)),
  ),
  ...section('broadcasts', nodeOfNames(others.broadcasts ?? [])),
  ...section('kv', nodeOfNames(others.kv ?? [])),
  ...section('vector', nodeOfNames(others.vector ?? [])),
  ...section('sql', nodeOfNames(others.sql ?? [])),
})

const propertyName = (name: string): string => (/^[A-Za-z_$][\w$]*$/.test(name) ? name : literal(name))

/** Fields are one line each, everything above them is indented. */
function print(node: Node, indent: string): string {
  if (typeof node === 'string') return node
  const members = Object.entries(node)
  if (members.length === 0) return '{}'
  if (members.every(([, member]) => typeof member === 'string' && !member.startsWith('(')))
    return `{ ${members.map(([name, member]) => `readonly ${propertyName(name)}: ${member as string}`).join('; ')} }`
  const inner = `${indent}  `
  const lines = members.map(([name, member]) => `${inner}readonly ${propertyName(name)}: ${print(member, inner)}\n`)
  return `{\n${lines.join('')}${indent}}`
}

/** Functions for the second type of `createClient`; what one without a schema returns is not known at run time. */
function formatFunctions(functions: SchemaDescription['functions'] = {}): string {
  const members = Object.entries(functions).map(([name, { input, output, streams }]) => {
    const given = input === null ? 'input?: any' : `input: ${typeOfSchema(input)}`
    // A server of an earlier version does not show it.
    const result = output ? typeOfSchema(output) : 'any'
    const types = `(${given}) => ${streams ? `AsyncIterable<${result}>` : result}`
    return `  readonly ${propertyName(name)}: { readonly kind: 'rpc'; readonly types?: ${types} }\n`
  })
  return members.length === 0 ? '' : `\nexport interface Functions {\n${members.join('')}}\n`
}

/** The text of the declaration file. */
export const formatDeclarations = (source: TypeSource): string => `/**
 * Types of a Plinth server for its clients: \`createClient<Config>(url, …)\`. Written by \`plinth types\`; run it again
 * when the configuration has changed.
 */
export interface Config ${print(nodeOfSource(source), '')}
${formatFunctions(source.functions)}`
