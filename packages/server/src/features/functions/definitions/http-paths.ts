/** Finds the function that serves a path below `/api/fn`: literal segments win over parameters. */
import type { HttpDefinition } from './definition.ts'

export interface FoundPath {
  readonly definition: HttpDefinition
  readonly params: Readonly<Record<string, string>>
}

export type HttpPaths = (method: string, path: string) => FoundPath | null

const isParameter = (segment: string): boolean => segment.startsWith(':')

/** Literal segments sort before parameters, from left to right, and a method before `all`. */
function compare(a: HttpDefinition, b: HttpDefinition): number {
  const [left, right] = [a.path.split('/'), b.path.split('/')]
  for (const [at, segment] of left.entries()) {
    const difference = Number(isParameter(segment)) - Number(isParameter(right[at] ?? ''))
    if (difference !== 0) return difference
  }
  return Number(a.method === 'all') - Number(b.method === 'all')
}

export function createHttpPaths(definitions: readonly HttpDefinition[]): HttpPaths {
  const ordered = definitions.toSorted(compare).map((definition) => ({ definition, parts: definition.path.split('/') }))
  return (method, path) => {
    const segments = path.split('/')
    for (const { definition, parts } of ordered) {
      if (definition.method !== 'all' && definition.method !== method.toLowerCase()) continue
      const params = match(parts, segments)
      if (params) return { definition, params }
    }
    return null
  }
}

function match(parts: readonly string[], segments: readonly string[]): Record<string, string> | null {
  if (parts.length !== segments.length) return null
  const params: Record<string, string> = {}
  for (const [at, part] of parts.entries()) {
    const segment = segments[at] ?? ''
    if (!isParameter(part)) {
      if (part !== segment) return null
      continue
    }
    if (segment === '') return null
    try {
      params[part.slice(1)] = decodeURIComponent(segment)
    } catch {
      return null
    }
  }
  return params
}
