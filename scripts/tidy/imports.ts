/**
 * Who may import whom: the dependency line, features apart, adapters behind their ports, and no cycles.
 */
import { join } from 'node:path/posix'
import { importsOf, lineAt } from './code.ts'
import { isProgram, isSource, type Repository, serverFolder } from './repository.ts'

const contractFolder = `${serverFolder}engines/contract/`

/** A folder or file imports only from itself and from what stands left of it. */
const line = [
  'base',
  'engines',
  'query',
  'access',
  'config',
  'host',
  'http',
  'features',
  'app',
  'testing',
  'cli',
  'main',
]
const remedy = 'pass it in from app.ts, or move the shared code to the left'
/** What every folder may read: it imports nothing but itself. */
const isShared = (path: string): boolean =>
  path.startsWith(`${serverFolder}limits/`) ||
  path.startsWith(`${serverFolder}log-events/`) ||
  [`${serverFolder}error-codes.ts`, `${serverFolder}errors.ts`, `${serverFolder}version.ts`].includes(path)

/** The rank of a file on the dependency line; -1 for a file outside of it. */
const rankOf = (path: string): number =>
  line.indexOf(path.slice(serverFolder.length).split('/')[0]?.replace(/\.ts$/, '') ?? '')

/** The file that an import refers to; null for packages and the runtime. */
function resolveImport(from: string, specifier: string): string | null {
  return specifier.startsWith('.') ? join(from, '..', specifier) : null
}

/** Path to the paths it imports, of every source. */
function graphOf(repository: Repository): Map<string, string[]> {
  const graph = new Map<string, string[]>()
  for (const [path, text] of repository) {
    if (!isSource(path)) continue
    const found = importsOf(text).map((specifier) => resolveImport(path, specifier))
    graph.set(path, [...new Set(found.filter((target) => target !== null))])
  }
  return graph
}

/** Checks the dependency line; unit tests have the rank of the file beside them. */
export function checkLine(repository: Repository): string[] {
  const mistakes: string[] = []
  for (const [path, targets] of graphOf(repository)) {
    if (!path.startsWith(serverFolder) || isShared(path)) continue
    const rank = rankOf(path)
    if (rank < 0) {
      mistakes.push(`${path}: is in no known folder of src; move it to one of ${line.slice(0, -1).join(', ')}`)
      continue
    }
    for (const target of targets) {
      if (isShared(target) || target === 'packages/server/package.json') continue
      if (!target.startsWith(serverFolder))
        mistakes.push(`${path}: imports ${target}; src must not import from outside`)
      else if (rankOf(target) > rank)
        mistakes.push(
          `${path}: imports ${target}, which is to the right of it on the line ${line.join(' ← ')}; ${remedy}`,
        )
    }
  }
  return mistakes
}

export function checkFeatures(repository: Repository): string[] {
  const featureOf = (path: string): string | undefined => /^packages\/server\/src\/features\/([^/]+)\//.exec(path)?.[1]
  return edges(repository, (path, target) => {
    const [own, other] = [featureOf(path), featureOf(target)]
    if (own === undefined || other === undefined || own === other) return null
    return `features do not know each other; let app.ts hand ${own} the function it needs`
  })
}

/** The technology that an engine file is an adapter for. */
const technologyOf = (path: string): string | undefined =>
  /^packages\/server\/src\/engines\/(?:[\w/-]*[/-])?(sqlite|postgres|redis|memory|fs|s3)(?:[/-][\w/-]*)?\.ts$/.exec(
    path,
  )?.[1]

export function checkAdapters(repository: Repository): string[] {
  return edges(repository, (path, target) => {
    const technology = technologyOf(target)
    if (technology === undefined || technology === technologyOf(path)) return null
    if (path === `${serverFolder}engines/open.ts` || !isProgram(path) || path.startsWith(contractFolder)) return null
    return 'only engines/open.ts names adapters; open it there and use the port'
  })
}

/** Modules of the runtime. Its globals, and the environment, are the linter's. */
export function checkRuntime(repository: Repository): string[] {
  return [...repository].flatMap(([path, text]) => {
    if (!isProgram(path) || /^packages\/server\/src\/(?:http\/server\.ts|engines\/|base\/|host\/)/.test(path)) return []
    return importsOf(text)
      .filter((specifier) => specifier === 'bun' || specifier.startsWith('bun:'))
      .map(
        (specifier) => `${path}: imports ${specifier}; only http/server.ts, engines/, base/ and host/ use the runtime`,
      )
  })
}

const bodyReader = /^(?!\s*(?:\*|\/[/*])).*\brequest\??\.(?:body|bytes|json|text|arrayBuffer|blob|formData|clone)\b/gim

export function checkBodyReaders(repository: Repository): string[] {
  return [...repository].flatMap(([path, text]) => {
    if (!isProgram(path) || path === `${serverFolder}http/input/request-body.ts`) return []
    return [...text.matchAll(bodyReader)].map(
      ({ index }) =>
        `${path}:${lineAt(text, index)}: only http/input/request-body.ts reads the body of a request, since it counts; ` +
        'use `call.rawBody` with a bound',
    )
  })
}

export function checkCycles(repository: Repository): string[] {
  const graph = graphOf(repository)
  const done = new Set<string>()
  const mistakes: string[] = []
  const visit = (path: string, trail: readonly string[]): void => {
    const start = trail.indexOf(path)
    if (start >= 0) {
      const cycle = [...trail.slice(start), path].join(' → ')
      mistakes.push(`${cycle}: a cycle; move what they share to a file of its own`)
      return
    }
    if (done.has(path)) return
    for (const target of graph.get(path) ?? []) visit(target, [...trail, path])
    done.add(path)
  }
  for (const path of graph.keys()) visit(path, [])
  return mistakes
}

/** What `judge` says of each import, with its place. */
function edges(repository: Repository, judge: (path: string, target: string) => string | null): string[] {
  return [...graphOf(repository)].flatMap(([path, targets]) =>
    targets.flatMap((target) => {
      const message = judge(path, target)
      return message === null ? [] : [`${path}: imports ${target}; ${message}`]
    }),
  )
}
