/** Functions of the application in the OpenAPI document: those that callers invoke, under paths of their own. */

/** A function that callers can invoke. */
export type FunctionOutline =
  | {
      readonly kind: 'rpc'
      readonly name: string
      /** The JSON Schema of its input; null where there is none. */
      readonly input: object | null
      /** That of its result, or of each value that it yields; null where there is none. */
      readonly output: object | null
      /** Whether it responds with server-sent events. */
      readonly streams: boolean
      /** Whether only service keys may call it. */
      readonly isInternal: boolean
    }
  | { readonly kind: 'http'; readonly name: string; readonly method: string; readonly path: string }

type Json = Readonly<Record<string, unknown>>

/** What the functions add to `paths` and to `components.schemas`. */
export interface DescribedFunctions {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Json>>>>
  readonly schemas: Readonly<Record<string, unknown>>
}

const prefix = '/api/fn'
const tag = 'Functions of the application'
const anyone = [{}, { bearer: [] }, { serviceKey: [] }]
const methods = ['get', 'post', 'put', 'patch', 'delete']
const failed = { default: { $ref: '#/components/responses/Error' } }

export function describeFunctions(functions: readonly FunctionOutline[]): DescribedFunctions {
  const paths: Record<string, Record<string, Json>> = {}
  const schemas: Record<string, unknown> = {}
  for (const outline of functions) {
    if (outline.kind === 'rpc') {
      const { name, input, output } = outline
      if (output) schemas[`Result.${name}`] = withReferences(output, `#/components/schemas/Result.${name}`)
      if (input) schemas[`Function.${name}`] = withReferences(input, `#/components/schemas/Function.${name}`)
      paths[`${prefix}/${name}`] = { ...paths[`${prefix}/${name}`], post: describeCall(outline) }
      continue
    }
    const { name, method, path } = outline
    const template = prefix + path.replaceAll(/:(\w+)/g, '{$1}')
    const served = method === 'all' ? methods : [method]
    for (const one of served) {
      // A function of this method is served before one of all methods.
      if (method === 'all' && paths[template]?.[one]) continue
      const id = method === 'all' ? `fn.${name}.${one}` : `fn.${name}`
      paths[template] = { ...paths[template], [one]: describeHttp(id, name, path) }
    }
  }
  return { paths, schemas }
}

function describeCall({ name, input, output, streams, isInternal }: FunctionOutline & { kind: 'rpc' }): Json {
  const schema = input ? { $ref: `#/components/schemas/Function.${name}` } : {}
  const result = output && !streams ? { $ref: `#/components/schemas/Result.${name}` } : {}
  const type = streams ? 'text/event-stream' : 'application/json'
  return {
    operationId: `fn.${name}`,
    tags: [tag],
    summary: `Call \`${name}\``,
    security: isInternal ? [{ serviceKey: [] }] : anyone,
    requestBody: { required: input !== null, content: { 'application/json': { schema } } },
    responses: {
      200: {
        description: streams ? 'Its values, an event each' : 'Its result',
        content: { [type]: { schema: result } },
      },
      ...failed,
    },
  }
}

const describeHttp = (operationId: string, name: string, path: string): Json => ({
  operationId,
  tags: [tag],
  summary: `\`${name}\``,
  security: anyone,
  parameters: [...path.matchAll(/:(\w+)/g)].map(([, parameter]) => ({
    name: parameter,
    in: 'path',
    required: true,
    schema: { type: 'string' },
  })),
  responses: { 200: { description: 'The response of the function' }, ...failed },
})

/** Keywords whose members are schemas by name, and those whose values are no schemas. */
const namedSchemas = new Set(['properties', 'patternProperties', '$defs', 'definitions', 'dependentSchemas'])
const values = new Set(['const', 'enum', 'default', 'examples'])

/** A schema whose references to its own parts begin at `root`, where it is in the document. */
export function withReferences(schema: unknown, root: string): unknown {
  if (Array.isArray(schema)) return schema.map((one) => withReferences(one, root))
  if (typeof schema !== 'object' || schema === null) return schema
  return Object.fromEntries(
    Object.entries(schema)
      .filter(([keyword]) => keyword !== '$schema')
      .map(([keyword, value]) => {
        if (keyword === '$ref' && typeof value === 'string' && value.startsWith('#'))
          return [keyword, root + value.slice(1)]
        if (values.has(keyword)) return [keyword, value]
        if (namedSchemas.has(keyword) && typeof value === 'object' && value !== null)
          return [
            keyword,
            Object.fromEntries(Object.entries(value).map(([name, one]) => [name, withReferences(one, root)])),
          ]
        return [keyword, withReferences(value, root)]
      }),
  )
}
