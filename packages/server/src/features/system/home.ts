/** The address `/`: where everything is, as a page for browsers and as JSON for programs. */
import { z } from 'zod'
import type { Caller } from '../../access/caller.ts'
import type { Config } from '../../config/config.ts'
import { type Endpoint, endpoint, type Reply } from '../../http/endpoint.ts'
import { formatHomePage, type HomeLink, homePageHeaders } from '../../http/pages/home-page.ts'
import { prefersHtml } from '../../http/replies/accept.ts'
import { json } from '../../http/replies/reply.ts'

type HomeConfig = Pick<Config, 'mode' | 'namespaces' | 'schemaEndpoint'>

export interface HomeParts {
  readonly config: () => HomeConfig
  /** The program's version, as in package.json. */
  readonly version: string
  /** Where the server is reached, without a slash at its end. */
  readonly url: () => string
  /** Whether there is no administrator yet; asked in development mode only. */
  readonly needsSetup: () => Promise<boolean>
  /** Whether `/api/schema` shows the tables to this caller. */
  readonly maySeeSchema: (mode: HomeConfig['schemaEndpoint'], caller: Caller) => boolean
}

const homeSchema = z.object({
  name: z.literal('Plinth'),
  version: z.string().optional(),
  links: z.record(z.string(), z.string()),
})

interface Link extends HomeLink {
  readonly name: string
}

const publicLinks: readonly Link[] = [
  { name: 'docs', href: '/docs', title: 'API reference', about: 'Every endpoint, with its parameters and replies' },
  { name: 'openapi', href: '/openapi.json', title: 'OpenAPI', about: 'The same for tools and generated clients' },
  { name: 'health', href: '/api/health', title: 'Health', about: 'Whether the server takes requests' },
]

/** Where the notice about it leads; without the token of the printed link its form is refused. */
const setupPath = '/setup'

const setupNotice =
  'There is no administrator yet. Open the link that `plinth dev` printed when it started (`/setup#…`), or run ' +
  '`plinth users create --email you@example.com --role admin`.'

export const createHomeEndpoint = (parts: HomeParts): Endpoint =>
  endpoint({
    name: 'system.home',
    allowsUnknownQuery: true,
    method: 'GET',
    paths: ['/'],
    tag: 'System',
    summary: 'Where everything is',
    description:
      'HTML for clients that ask for `text/html`, JSON for all others. In release mode it names what is public and no ' +
      'version.',
    credentials: 'public',
    rateLimit: 'global',
    replies: { 200: { description: 'Name, version and links', schema: homeSchema } },
    async handle({ headers, caller }) {
      const reply = prefersHtml(headers.get('accept')) ? formatPage : formatJson
      const { mode } = parts.config()
      return withVary(mode === 'release' ? reply(releaseHome) : reply(await describeDevelopment(parts, caller)))
    },
  })

interface Home {
  readonly version: string | null
  readonly needsSetup: boolean
  readonly commands: readonly { readonly about: string; readonly command: string }[]
}

const releaseHome: Home = { version: null, needsSetup: false, commands: [] }

async function describeDevelopment(parts: HomeParts, caller: Caller): Promise<Home> {
  // The links are of use while the database is away, too.
  const needsSetup = await parts.needsSetup().catch(() => false)
  return { version: parts.version, needsSetup, commands: listCommands(parts, caller) }
}

/** The first commands of the guides. They name a table only to a caller who may see the schema. */
function listCommands({ config, url, maySeeSchema }: HomeParts, caller: Caller): Home['commands'] {
  const { namespaces, schemaEndpoint } = config()
  const path = maySeeSchema(schemaEndpoint, caller) ? findTablePath(namespaces) : null
  const table = `${url()}${path ?? '/api/db/shared/tables/TABLE'}`
  const replace = path === null ? ' Put the name of one of your tables in place of `TABLE`.' : ''
  return [
    { about: 'Ask whether the server takes requests:', command: `curl ${url()}/api/health` },
    {
      about: `List records with the service key, which the server printed when it started, in \`KEY\`.${replace}`,
      command: `curl '${table}?limit=3' -H "X-Platform-Service-Key: $KEY"`,
    },
    {
      about: 'List them as the user `alice`, so that your rules decide:',
      command: `curl '${table}?limit=3' -H "Authorization: Bearer $(plinth token alice)"`,
    },
  ]
}

/** The path of a table that can be used without an instance. */
function findTablePath(namespaces: HomeConfig['namespaces']): string | null {
  for (const { name, instance, tables } of namespaces.values()) {
    const [table] = tables.keys()
    if (!instance && table !== undefined) return `/api/db/${name}/tables/${table}`
  }
  return null
}

const formatJson = ({ version, needsSetup }: Home): Reply =>
  json({
    name: 'Plinth',
    ...(version === null ? {} : { version }),
    links: {
      ...Object.fromEntries(publicLinks.map(({ name, href }) => [name, href])),
      ...(needsSetup ? { setup: setupPath } : {}),
    },
  })

const formatPage = ({ version, needsSetup, commands }: Home): Reply => ({
  status: 200,
  text: formatHomePage({
    status: version === null ? 'Running' : `Running · version ${version} · development mode`,
    links: publicLinks,
    notice: needsSetup ? setupNotice : null,
    commands,
  }),
  contentType: 'text/html; charset=utf-8',
  headers: homePageHeaders,
})

/** Caches must tell the two forms apart. An answer's own `Vary` replaces the common one, which may name the origin. */
const withVary = (reply: Reply): Reply => ({ ...reply, headers: { ...reply.headers, Vary: 'Accept, Origin' } })
