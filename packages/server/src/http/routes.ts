/** The routing table: paths and methods of endpoints, and replies to requests that match none. */
import { methodNotAllowed, notFound, requiresUpgrade } from '../errors.ts'
import type { Endpoint, Params, Reply, SocketEndpoint } from './endpoint.ts'
import { empty } from './replies/reply.ts'
import type { Cors } from './security/cors.ts'

export interface Found {
  readonly endpoint: Endpoint
  readonly params: Params
}

export interface Routes {
  /** Endpoints by path as declared (with `:param` segments) and method, without `:param+` paths. */
  readonly byPath: ReadonlyMap<string, ReadonlyMap<string, Endpoint>>
  /**
   * Matches a path with a parameter of any depth (`:param+`) and decodes its parameters; null if none matches. The
   * runtime's router does not support such paths, so this runs when the router found no route.
   */
  findDeep(method: string, path: string): Found | null
  /** Matches any path, as the runtime's router does; null if no endpoint has the path and the method. */
  find(method: string, path: string): Found | null
  /** Methods of a path under its most literal pattern; empty for an unknown path. */
  allowed(path: string): readonly string[]
}

interface Pattern {
  readonly segments: readonly string[]
  readonly methods: ReadonlyMap<string, Endpoint>
}

/** Throws an `Error` when two endpoints claim the same method and path, or the same name. */
export function createRoutes(endpoints: readonly Endpoint[]): Routes {
  const byPath = new Map<string, Map<string, Endpoint>>()
  const names = new Set<string>()
  for (const endpoint of endpoints) {
    if (names.has(endpoint.name)) throw new Error(`Two endpoints are named ${endpoint.name}`)
    names.add(endpoint.name)
    for (const path of endpoint.paths) {
      const methods = byPath.get(path) ?? new Map<string, Endpoint>()
      const other = methods.get(endpoint.method)
      if (other) throw new Error(`${endpoint.name} and ${other.name} both declare ${endpoint.method} ${path}`)
      byPath.set(path, methods.set(endpoint.method, endpoint))
    }
  }
  const patterns = [...byPath].map(([path, methods]): Pattern => ({ segments: path.split('/'), methods }))
  const deep = patterns.filter(isDeep).sort((a, b) => countLiterals(b) - countLiterals(a))
  const flat = patterns.filter((pattern) => !isDeep(pattern))
  const tree = createTree(flat)

  function findDeep(method: string, path: string): Found | null {
    const segments = path.split('/')
    for (const { segments: pattern, methods } of deep) {
      const endpoint = endpointOf(methods, method)
      const params = endpoint && findParams(pattern, segments)
      if (endpoint && params) return { endpoint, params }
    }
    return null
  }

  return {
    byPath: new Map([...byPath].filter(([path]) => !isDeep({ segments: path.split('/') }))),
    findDeep,
    find(method, path) {
      const segments = path.split('/')
      const pattern = findPattern(tree, segments)
      const endpoint = pattern && endpointOf(pattern.methods, method)
      const params = endpoint && findParams(pattern.segments, segments)
      return endpoint && params ? { endpoint, params } : findDeep(method, path)
    },
    allowed(path) {
      const segments = path.split('/')
      const fitting = flat.filter((pattern) => fits(pattern.segments, segments))
      const mostLiterals = Math.max(...fitting.map(countLiterals))
      const meant = fitting.filter((pattern) => countLiterals(pattern) === mostLiterals)
      meant.push(...deep.filter((pattern) => findParams(pattern.segments, segments) !== null))
      const allowed = new Set(meant.flatMap(({ methods }) => [...methods.keys()]))
      if (allowed.has('GET')) allowed.add('HEAD')
      if (allowed.size > 0) allowed.add('OPTIONS')
      return [...allowed].sort()
    },
  }
}

const endpointOf = (methods: Pattern['methods'], method: string): Endpoint | undefined =>
  methods.get(method) ?? (method === 'HEAD' ? methods.get('GET') : undefined)

/** Patterns by their segments; a parameter of any name is one branch. */
interface Branch {
  readonly literals: Map<string, Branch>
  parameter: Branch | null
  pattern: Pattern | null
}

const newBranch = (): Branch => ({ literals: new Map(), parameter: null, pattern: null })

function createTree(patterns: readonly Pattern[]): Branch {
  const tree = newBranch()
  for (const pattern of patterns) {
    let at = tree
    for (const segment of pattern.segments) {
      if (segment.startsWith(':')) {
        at.parameter ??= newBranch()
        at = at.parameter
      } else {
        const next = at.literals.get(segment) ?? newBranch()
        at.literals.set(segment, next)
        at = next
      }
    }
    at.pattern ??= pattern
  }
  return tree
}

/** The pattern of a path. In each segment, from the left, a literal is preferred to a parameter. */
function findPattern(branch: Branch, segments: readonly string[], depth = 0): Pattern | null {
  const segment = segments[depth]
  if (segment === undefined) return branch.pattern
  const literal = branch.literals.get(segment)
  const found = literal ? findPattern(literal, segments, depth + 1) : null
  if (found || branch.parameter === null || segment === '') return found
  return findPattern(branch.parameter, segments, depth + 1)
}

const isDeep = ({ segments }: Pick<Pattern, 'segments'>): boolean => segments.some((segment) => segment.endsWith('+'))

const countLiterals = ({ segments }: Pick<Pattern, 'segments'>): number =>
  segments.filter((segment) => !segment.startsWith(':')).length

/** As in the runtime's router: literals match exactly, a parameter matches any non-empty segment. */
function fits(pattern: readonly string[], segments: readonly string[]): boolean {
  return (
    pattern.length === segments.length &&
    pattern.every((part, at) => (part.startsWith(':') ? segments[at] !== '' : part === segments[at]))
  )
}

/** The parameters of a path under a pattern; null if it does not match or cannot be decoded. */
function findParams(pattern: readonly string[], segments: readonly string[]): Params | null {
  const surplus = segments.length - pattern.length
  if (surplus < 0) return null
  const params: Record<string, string> = {}
  let at = 0
  for (const part of pattern) {
    const isDeepPart = part.endsWith('+')
    const text = segments.slice(at, at + 1 + (isDeepPart ? surplus : 0)).join('/')
    at += 1 + (isDeepPart ? surplus : 0)
    if (!part.startsWith(':')) {
      if (part !== text) return null
      continue
    }
    if (text === '') return null
    try {
      params[part.slice(1).replace('+', '')] = decodeURIComponent(text)
    } catch {
      return null
    }
  }
  return params
}

/** The path of a WebSocket endpoint, so that other methods get a 405 with `Allow`. */
export const socketRoute = ({ name, path, tag, summary }: SocketEndpoint): Endpoint => ({
  name,
  method: 'GET',
  paths: [path],
  tag,
  summary,
  credentials: 'public',
  rateLimit: null,
  allowsUnknownQuery: true,
  replies: {},
  handle() {
    throw requiresUpgrade()
  },
})

/** Replies to a request that matches no endpoint: a preflight or OPTIONS. Throws 405 with `Allow`, or 404. */
export function answerUnmatched(routes: Routes, cors: Cors, request: Request, path: string): Reply {
  const isOptions = request.method === 'OPTIONS'
  if (isOptions && request.headers.has('access-control-request-method')) return cors.preflight()
  const allowed = routes.allowed(path)
  if (allowed.length === 0) throw notFound('Path')
  if (isOptions) return empty(204, { Allow: allowed.join(', ') })
  throw methodNotAllowed(allowed)
}
