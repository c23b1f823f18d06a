/** The endpoint `/`: an overview as HTML for browsers and as JSON for programs. */

import type { Caller } from '../../access/caller.ts'
import { z } from '../../base/schemas/z.ts'
import type { Config } from '../../config/config.ts'
import { type Endpoint, endpoint, type Reply } from '../../http/endpoint.ts'
import { formatHomePage, type HomeLink, homePageHeaders } from '../../http/pages/home-page.ts'
import { prefersHtml } from '../../http/replies/accept.ts'
import { json } from '../../http/replies/reply.ts'

type HomeConfig = Pick<Config, 'mode' | 'namespaces' | 'schemaEndpoint' | 'dashboard'>

export interface HomeParts {
  readonly config: () => HomeConfig
  /** The server's version, as in package.json. */
  readonly version: string
  /** The server's base URL without a trailing slash. */
  readonly url: () => string
  /** Whether no administrator exists; called in development mode only. */
  readonly needsSetup: () => Promise<boolean>
  /** Whether this caller may read `/api/schema`. */
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
  { name: 'docs', href: '/docs', title: 'API reference', about: 'Every endpoint with its parameters and responses' },
  {
    name: 'openapi',
    href: '/openapi.json',
    title: 'OpenAPI',
    about: 'The API description for tools and generated clients',
  },
  { name: 'health', href: '/api/health', title: 'Health', about: 'The state of the server' },
]

/** Shown in development mode: a server in use does not advertise where its administrators sign in. */
const dashboardLink: Link = {
  name: 'dashboard',
  href: '/dashboard',
  title: 'Dashboard',
  about: 'Data, rules, users and logs in the browser',
}

/** Target of the setup notice; without the token of the printed link its form is rejected. */
const setupPath = '/setup'

const setupNotice =
  'No administrator exists. Open the link that `plinth dev` printed at startup (`/setup#…`), or run ' +
  '`plinth users create --email you@example.com --role admin`.'

export const createHomeEndpoint = (parts: HomeParts): Endpoint =>
  endpoint({
    name: 'system.home',
    allowsUnknownQuery: true,
    method: 'GET',
    paths: ['/'],
    tag: 'System',
    summary: 'Get the home page',
    description:
      'HTML for clients that accept `text/html`, JSON for all others. In release mode it lists public links only and no ' +
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
  readonly links: readonly Link[]
  readonly needsSetup: boolean
  readonly commands: readonly { readonly about: string; readonly command: string }[]
}

const releaseHome: Home = { version: null, links: publicLinks, needsSetup: false, commands: [] }

async function describeDevelopment(parts: HomeParts, caller: Caller): Promise<Home> {
  // The page is useful while the database is unavailable, too.
  const needsSetup = await parts.needsSetup().catch(() => false)
  const links = parts.config().dashboard === null ? publicLinks : [dashboardLink, ...publicLinks]
  return { version: parts.version, links, needsSetup, commands: listCommands(parts, caller) }
}

/** The first commands of the guides. They name a table only if the caller may read the schema. */
function listCommands({ config, url, maySeeSchema }: HomeParts, caller: Caller): Home['commands'] {
  const { namespaces, schemaEndpoint } = config()
  const path = maySeeSchema(schemaEndpoint, caller) ? findTablePath(namespaces) : null
  const table = `${url()}${path ?? '/api/db/shared/tables/TABLE'}`
  const replace = path === null ? ' Replace `TABLE` with the name of one of your tables.' : ''
  return [
    { about: 'Check the server’s health:', command: `curl ${url()}/api/health` },
    {
      about: `List records with the service key that the server printed at startup, in \`KEY\`.${replace}`,
      command: `curl '${table}?limit=3' -H "X-Platform-Service-Key: $KEY"`,
    },
    {
      about: 'List them as the user `alice`, subject to your access rules:',
      command: `curl '${table}?limit=3' -H "Authorization: Bearer $(plinth token alice)"`,
    },
  ]
}

/** The path of a table that needs no instance. */
function findTablePath(namespaces: HomeConfig['namespaces']): string | null {
  for (const { name, instance, tables } of namespaces.values()) {
    const [table] = tables.keys()
    if (!instance && table !== undefined) return `/api/db/${name}/tables/${table}`
  }
  return null
}

const formatJson = ({ version, links, needsSetup }: Home): Reply =>
  json({
    name: 'Plinth',
    ...(version === null ? {} : { version }),
    links: {
      ...Object.fromEntries(links.map(({ name, href }) => [name, href])),
      ...(needsSetup ? { setup: setupPath } : {}),
    },
  })

const formatPage = ({ version, links, needsSetup, commands }: Home): Reply => ({
  status: 200,
  text: formatHomePage({
    status: version === null ? 'Running' : `Running · version ${version} · development mode`,
    links,
    notice: needsSetup ? setupNotice : null,
    commands,
  }),
  contentType: 'text/html; charset=utf-8',
  headers: homePageHeaders,
})

/**
 * Caches must distinguish the two representations. This `Vary` replaces the common one, which may contain the origin.
 */
const withVary = (reply: Reply): Reply => ({ ...reply, headers: { ...reply.headers, Vary: 'Accept, Origin' } })
