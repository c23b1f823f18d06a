/**
 * The browser script of the page at `/docs`: reads the OpenAPI document and shows it. Builds nodes, never markup, so
 * that no name or text of the API can become code.
 */

interface Schema {
  readonly type?: string | readonly string[]
  readonly format?: string
  readonly title?: string
  readonly description?: string
  readonly properties?: Readonly<Record<string, Schema>>
  readonly required?: readonly string[]
  readonly items?: Schema
  readonly additionalProperties?: boolean | Schema
  readonly enum?: readonly unknown[]
  readonly const?: unknown
  readonly default?: unknown
  readonly examples?: readonly unknown[]
  readonly anyOf?: readonly Schema[]
  readonly oneOf?: readonly Schema[]
  readonly $ref?: string
  readonly minimum?: number
  readonly maximum?: number
  readonly minLength?: number
  readonly maxLength?: number
  readonly pattern?: string
}
interface Parameter {
  readonly name: string
  readonly in: string
  readonly required?: boolean
  readonly description?: string
  readonly schema?: Schema
}
type Content = Readonly<Record<string, { readonly schema?: Schema }>>
interface Operation {
  readonly operationId: string
  readonly tags: readonly string[]
  readonly summary: string
  readonly description?: string
  readonly security: readonly Readonly<Record<string, unknown>>[]
  readonly parameters: readonly Parameter[]
  readonly requestBody?: { readonly content: Content }
  readonly responses: Readonly<
    Record<string, { readonly description?: string; readonly content?: Content; readonly $ref?: string }>
  >
  readonly 'x-service-key-scope'?: string
  readonly 'x-rate-limit'?: string
}
interface Api {
  readonly info: { readonly title: string; readonly version: string }
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>
  readonly components: { readonly schemas: Readonly<Record<string, Schema>> }
}
/** An operation at each of its paths. */
interface Entry {
  readonly method: string
  readonly paths: string[]
  readonly operation: Operation
}

/** Sent to browsers as its own source, so everything that it uses is inside it. */
export function showApi(): void {
  type Child = Node | string | null

  function make(name: string, attributes: Record<string, string> = {}, ...children: readonly Child[]): HTMLElement {
    const node = document.createElement(name)
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value)
    node.append(...children.filter((child) => child !== null))
    return node
  }
  const byId = (id: string): HTMLElement => document.getElementById(id) as HTMLElement

  /** Text in which `words between backticks` are code. */
  const prose = (text: string): Child[] =>
    text.split('`').map((part, index) => (index % 2 === 1 ? make('code', {}, part) : part))

  function entriesOf(api: Api): Entry[] {
    const entries = new Map<string, Entry>()
    for (const [path, item] of Object.entries(api.paths)) {
      for (const [method, operation] of Object.entries(item)) {
        // What a GET says of itself holds for its HEAD.
        if (operation.operationId.endsWith('.head')) continue
        // `records.list.byInstanceId` is `records.list` at another path.
        const name = operation.operationId.replace(/\.by[A-Z]\w*$/, '')
        const known = entries.get(name)
        if (known) known.paths.push(path)
        else entries.set(name, { method: method.toUpperCase(), paths: [path], operation })
      }
    }
    return [...entries.values()]
  }

  function typeOf(schema: Schema): string {
    if (schema.$ref) return schema.$ref.split('/').pop() ?? ''
    if (schema.const !== undefined) return JSON.stringify(schema.const)
    if (schema.enum) return schema.enum.map((value) => JSON.stringify(value)).join(' | ')
    const forms = schema.anyOf ?? schema.oneOf
    if (forms) return forms.map(typeOf).join(' | ')
    const types = Array.isArray(schema.type) ? schema.type : [schema.type ?? 'any']
    return types
      .map((type) =>
        type === 'array'
          ? `${typeOf(schema.items ?? {})}[]`
          : schema.format && type === 'string'
            ? schema.format
            : type,
      )
      .join(' | ')
  }

  function limitsOf(schema: Schema): string {
    const least = schema.minimum ?? schema.minLength
    const most = schema.maximum ?? schema.maxLength
    const words = [
      least !== undefined && least > -Number.MAX_SAFE_INTEGER ? `at least ${least}` : '',
      most !== undefined && most < Number.MAX_SAFE_INTEGER ? `at most ${most}` : '',
      schema.pattern && !schema.format ? `matches ${schema.pattern}` : '',
      schema.default === undefined ? '' : `default ${JSON.stringify(schema.default)}`,
    ]
    return words.filter(Boolean).join(', ')
  }

  /** The fields of an object, with those of objects and lists inside it indented below. */
  function fieldRows(schema: Schema, marksRequired: boolean, depth = 0): HTMLElement[] {
    const inner = schema.properties ? schema : (schema.items ?? {})
    return Object.entries(inner.properties ?? {}).flatMap(([name, field]) => {
      const row = make(
        'tr',
        {},
        make(
          'td',
          { class: `depth-${Math.min(depth, 4)}` },
          make('code', {}, name),
          marksRequired && inner.required?.includes(name) ? make('b', { title: 'required' }, '*') : null,
        ),
        make('td', {}, make('span', { class: 'type' }, typeOf(field))),
        make('td', {}, ...prose(field.description ?? ''), make('span', { class: 'quiet' }, limitsOf(field))),
      )
      return [row, ...fieldRows(field, marksRequired, depth + 1)]
    })
  }

  /** What is sent says which fields have to be; what is received has all of them. */
  function describeSchema(schema: Schema, marksRequired = false): HTMLElement {
    const rows = fieldRows(schema, marksRequired)
    if (rows.length > 0) return make('table', {}, make('tbody', {}, ...rows))
    return make('p', { class: 'type' }, schema.type === 'object' ? 'object with any fields' : typeOf(schema))
  }

  function exampleOf(schema: Schema): unknown {
    if (schema.examples) return schema.examples[0]
    if (schema.default !== undefined) return schema.default
    if (schema.const !== undefined) return schema.const
    if (schema.enum) return schema.enum[0]
    const form = (schema.anyOf ?? schema.oneOf)?.[0]
    if (form) return exampleOf(form)
    const type = Array.isArray(schema.type) ? schema.type[0] : schema.type
    if (type === 'object') {
      return Object.fromEntries(
        Object.entries(schema.properties ?? {}).map(([name, field]) => [name, exampleOf(field)]),
      )
    }
    if (type === 'array') return schema.items ? [exampleOf(schema.items)] : []
    if (type === 'number' || type === 'integer') return schema.minimum ?? 0
    return type === 'boolean' ? true : type === 'string' ? '…' : null
  }

  /** A word of a shell command; what stands inside single quotes is left alone by every shell. */
  const quote = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`

  function curlOf({ method, paths, operation }: Entry, values: ReadonlyMap<string, string>): string {
    const [template = ''] = paths
    const path = template.replace(/\{(\w+)\}/g, (_, name: string) =>
      encodeURIComponent(values.get(`path ${name}`) || `:${name}`).replace('%3A', ':'),
    )
    const query = operation.parameters
      .filter((parameter) => parameter.in === 'query' && values.get(`query ${parameter.name}`))
      .map(({ name }) => `${encodeURIComponent(name)}=${encodeURIComponent(values.get(`query ${name}`) ?? '')}`)
      .join('&')
    const lines = [
      `curl ${method === 'GET' ? '' : `-X ${method} `}${quote(`${location.origin}${path}${query && `?${query}`}`)}`,
    ]
    const schemes = operation.security.map((way) => Object.keys(way)[0])
    if (schemes[0] === 'serviceKey') lines.push(`-H ${quote('X-Platform-Service-Key: <SERVICE_KEY>')}`)
    else if (schemes.includes('bearer')) lines.push(`-H ${quote('Authorization: Bearer <ACCESS_TOKEN>')}`)
    const body = operation.requestBody?.content['application/json']?.schema
    if (body)
      lines.push(`-H ${quote('Content-Type: application/json')}`, `-d ${quote(JSON.stringify(exampleOf(body)))}`)
    return lines.join(' \\\n  ')
  }

  function curlBox(entry: Entry): { node: HTMLElement; field: (key: string, label: string) => HTMLElement } {
    const values = new Map<string, string>()
    const code = make('code', {}, curlOf(entry, values))
    const copy = make('button', { type: 'button' }, 'Copy')
    copy.addEventListener('click', () => {
      navigator.clipboard.writeText(code.textContent ?? '').then(
        () => copy.replaceChildren('Copied'),
        () => getSelection()?.selectAllChildren(code),
      )
      setTimeout(() => copy.replaceChildren('Copy'), 1500)
    })
    return {
      node: make('div', { class: 'curl' }, copy, make('pre', { tabindex: '0' }, code)),
      field(key, label) {
        const input = make('input', {
          'aria-label': label,
          placeholder: 'value',
          autocomplete: 'off',
        }) as HTMLInputElement
        input.addEventListener('input', () => {
          values.set(key, input.value)
          code.replaceChildren(curlOf(entry, values))
        })
        return input
      },
    }
  }

  const credentialsOf = ({ security }: Operation): string => {
    const schemes = security.map((way) => Object.keys(way)[0])
    if (schemes.length === 0) return 'credentials are ignored'
    if (schemes[0] === undefined) return 'no credentials needed; rules may require them'
    return schemes.includes('bearer') ? 'access token or service key' : 'service key'
  }

  function describeOperation(entry: Entry): HTMLElement {
    const { method, paths, operation } = entry
    const curl = curlBox(entry)
    const facts = [credentialsOf(operation)]
    if (operation['x-service-key-scope']) facts.push(`scope \`${operation['x-service-key-scope']}\``)
    if (operation['x-rate-limit']) facts.push(`rate limit \`${operation['x-rate-limit']}\``)
    const parameters = operation.parameters.map(({ name, in: place, required, description, schema = {} }) =>
      make(
        'tr',
        {},
        make(
          'td',
          {},
          make('code', {}, name),
          required ? make('b', { title: 'required' }, '*') : null,
          make('span', { class: 'quiet' }, ` ${place}`),
        ),
        make('td', {}, make('span', { class: 'type' }, typeOf(schema))),
        make('td', {}, ...prose(description ?? ''), make('span', { class: 'quiet' }, limitsOf(schema))),
        make('td', {}, curl.field(`${place} ${name}`, name)),
      ),
    )
    const body = operation.requestBody?.content['application/json']?.schema
    const replies = Object.entries(operation.responses).filter(([status]) => status !== 'default')
    return make(
      'section',
      { id: operation.operationId, class: 'operation' },
      make(
        'h3',
        {},
        make('span', {}, ...prose(operation.summary)),
        make('a', { href: `#${operation.operationId}`, class: 'name' }, operation.operationId),
      ),
      make(
        'div',
        { class: 'paths', tabindex: '0' },
        make('b', { class: `method ${method.toLowerCase()}` }, method),
        make('div', {}, ...paths.map((path) => make('code', {}, path))),
      ),
      operation.description ? make('p', {}, ...prose(operation.description)) : null,
      make('p', { class: 'quiet' }, ...prose(facts.join(' · '))),
      parameters.length > 0 ? make('h4', {}, 'Parameters') : null,
      parameters.length > 0 ? make('table', {}, make('tbody', {}, ...parameters)) : null,
      body ? make('h4', {}, 'Body') : null,
      body ? describeSchema(body, true) : null,
      make('h4', {}, 'Replies'),
      ...replies.map(([status, { description = '', content }]) => {
        const schema = content?.['application/json']?.schema
        const line = [
          make('b', { class: `status s${status.charAt(0)}` }, status),
          make('span', {}, ...prose(description)),
        ]
        if (!schema || schema.$ref) return make('div', { class: 'reply' }, ...line)
        return make('details', { class: 'reply' }, make('summary', {}, ...line), describeSchema(schema))
      }),
      curl.node,
    )
  }

  function describeTable(name: string, schema: Schema): HTMLElement {
    return make(
      'section',
      { id: name, class: 'operation' },
      make('h3', {}, schema.title ?? name),
      make('p', { class: 'quiet' }, ...prose(schema.description ?? '')),
      describeSchema(schema),
    )
  }

  /** One group of the page, and its part of the contents. */
  function showGroup(title: string, links: readonly HTMLElement[], sections: readonly HTMLElement[]): void {
    if (sections.length === 0) return
    byId('contents').append(make('div', {}, make('h2', {}, title), ...links))
    byId('main').append(make('section', {}, make('h2', {}, title), ...sections))
  }

  function linkTo({ method, operation }: Entry): HTMLElement {
    const badge = make('b', { class: `method ${method.toLowerCase()}` }, method)
    return make('a', { href: `#${operation.operationId}` }, badge, make('span', {}, ...prose(operation.summary)))
  }

  function show(api: Api): void {
    document.title = `${api.info.title} API`
    byId('title').replaceChildren(document.title, make('small', {}, api.info.version))
    byId('main').replaceChildren()
    const entries = entriesOf(api)
    for (const tag of new Set(entries.flatMap(({ operation }) => operation.tags))) {
      const tagged = entries.filter(({ operation }) => operation.tags.includes(tag))
      showGroup(tag, tagged.map(linkTo), tagged.map(describeOperation))
    }
    const tables = Object.entries(api.components.schemas).filter(([name]) => name.startsWith('Table.'))
    showGroup(
      'Tables',
      tables.map(([name, { title = name }]) => make('a', { href: `#${name}` }, title)),
      tables.map(([name, schema]) => describeTable(name, schema)),
    )
    byId('search').addEventListener('input', () => filter((byId('search') as HTMLInputElement).value))
    // The browser looked for the place before it was there.
    document.getElementById(location.hash.slice(1))?.scrollIntoView()
  }

  /** Hides what does not hold every word, in the page and in its contents, and the groups that are left empty. */
  function filter(text: string): void {
    const words = text.toLowerCase().split(/\s+/).filter(Boolean)
    for (const operation of document.querySelectorAll<HTMLElement>('.operation')) {
      const content = operation.textContent?.toLowerCase() ?? ''
      operation.hidden = !words.every((word) => content.includes(word))
    }
    for (const link of document.querySelectorAll<HTMLAnchorElement>('#contents a')) {
      link.hidden = document.getElementById(link.hash.slice(1))?.hidden ?? false
    }
    for (const group of document.querySelectorAll<HTMLElement>('#main > section, #contents > div')) {
      group.hidden = [...group.querySelectorAll<HTMLElement>('.operation, #contents a')].every((item) => item.hidden)
    }
  }

  fetch('/openapi.json')
    .then((response) => (response.ok ? response.json() : Promise.reject(response.status)))
    .then((api) => show(api as Api))
    .catch(() => byId('main').replaceChildren(make('p', {}, 'The OpenAPI document could not be read.')))
}
