/**
 * Words that this repository has retired, and documents that comments must not cite because a clone does not contain
 * them. A match in any file fails `npm run check`.
 *
 *     node scripts/run.mjs scripts/checks/retired-words.ts                counts per folder
 *     node scripts/run.mjs scripts/checks/retired-words.ts packages/server/src/http       every match in a folder
 */
import { basename, dirname } from 'node:path/posix'
import { fileURLToPath } from 'node:url'
import { isSource, type Repository, readRepository } from '../tidy/repository.ts'

/** A match: where it is, the matched text, and what to write instead. */
export interface RetiredWord {
  readonly path: string
  /** From 1; 0 for a match in the file's name. */
  readonly line: number
  readonly found: string
  readonly remedy: string
}

interface Pattern {
  readonly pattern: RegExp
  readonly remedy: string
}

const caller = 'name the role: the caller, a client, a session, the server, a user, an unauthenticated request'
const american = 'use American spelling'
const told = 'name the operation: send, publish, notify, report, return, log'

/** Applied to all text: comments, strings, code and documents. Matched without regard to case. */
const prose: readonly Pattern[] = [
  { pattern: /\b(?:whoever|whomever|nobody(?!')|somebody|everybody|anybody|strangers?)\b/gi, remedy: caller },
  { pattern: /\bthrown out\b/gi, remedy: 'write: revoked, signed out, disconnected, evicted' },
  { pattern: /\banew\b/gi, remedy: 'write: again' },
  { pattern: /\b\w*(?:metre|colour|behaviour|favour|neighbour|honour)\w*/gi, remedy: american },
  { pattern: /\b(?:cancel|travel|label|model)l(?:ed|ing|ers?)\b/gi, remedy: american },
  { pattern: /\b(?:catalogue|centre|licence|judgement|artefact)s?\b|\bgrey\b/gi, remedy: american },
  { pattern: /\bof now\b/gi, remedy: 'write: current' },
  { pattern: /\btelephones?\b/gi, remedy: 'write: phone' },
  { pattern: /\bbelongs? into\b/gi, remedy: 'write: belongs in' },
  { pattern: /\bcom(?:e|es|ing) into being\b/gi, remedy: 'write: is created' },
  { pattern: /\bby the way of\b/gi, remedy: 'write: through, with' },
  { pattern: /\b(?:told|untold|tells?(?! [\w' ]{1,40}\bapart\b))\b/gi, remedy: told },
  { pattern: /\b(?:hears|heard|is to hear|must hear|may hear)\b/gi, remedy: 'write: receive, is notified' },
  { pattern: /\b(?:is|are|was|were|be|been|being) (?:looked at|asked)\b/gi, remedy: 'write: read, checked, queried' },
  { pattern: /\b(?:at|in|a|the|of|its|this|that|their|one) sights?\b/gi, remedy: 'write: view, query, visibility' },
  { pattern: /\bconducts?\b/gi, remedy: 'write: processes, runs' },
  { pattern: /\bgo(?:es)? on(?= (?:with|from|at|alone|as)\b|[.,;:])/gi, remedy: 'write: continues, resumes' },
  {
    pattern: /\b(?:its|their|each|every|own|whose|same|per) turns?\b/gi,
    remedy: 'write: advisory lock, tick, handler, slot, batch',
  },
  {
    pattern: /\b(?:is|are) (?:`[^`\n]+`|[A-Z]\w+)'s?(?: (?:matter|business|affair))?(?=[.;:,])/g,
    remedy: 'write what the other module does: "`x` validates …"',
  },
]

/** Words that no identifier and no file name may consist of, with the field's words for them. */
const identifierWords: Readonly<Record<string, string>> = {
  turn: 'lock, tick, handler, slot, batch',
  turns: 'locks, ticks, handlers, slots, batches',
  told: 'sent, notified, events',
  untold: 'unsent, unsynced',
  tell: 'notify, publish, report',
  tells: 'notifies',
  hear: 'receive, onMessage',
  heard: 'received, onMessage',
  say: 'send, write, enqueue',
  said: 'sent, reported',
  says: 'reports',
  sight: 'view, query',
  sights: 'views, queries',
  conduct: 'processor',
  dirt: 'changes, dirty flag',
  whole: 'snapshot, integer, all',
  whoever: 'caller, session',
  nobody: 'anonymous, none',
  somebody: 'caller, session',
  everybody: 'all',
  stranger: 'anonymous, unauthenticated',
  strangers: 'anonymous, unauthenticated',
  settle: 'resolve, finish, commit',
  settled: 'resolved, finished, committed',
  ask: 'request, query, check',
  asks: 'requests',
  asked: 'requested, input',
  asker: 'caller',
  hold: 'pause, lock, keep, lease',
  holds: 'has, contains',
  held: 'paused, locked, kept',
  look: 'check, read, poll',
  looks: 'checks',
  anew: 'again',
  place: 'position, cursor, location, slot',
  places: 'positions, cursors, locations, slots',
}

/** Names of the platform, of libraries and of the field that consist of retired words. */
const allowedIdentifier = new RegExp(
  [
    'allSettled|PromiseSettled',
    '[Ll]ook(?:Up|Ahead|Behind)',
    '[Ii]nPlace|[Pp]laceHolder',
    '[Ww]hole(?:Number|Param)',
    '[Tt]urn(?:Off|On|Into)',
    'holdForBackup',
  ].join('|'),
)

/**
 * Identifiers. One that consists of a single word can be distinguished from prose only where it is declared or is a
 * member; a compound one is recognized anywhere.
 */
const identifiers: readonly RegExp[] = [
  /\b(?:const|let|var|function|class|interface|type|enum|readonly|async|get|set)\s+([a-z]+|[A-Z][a-z]+)\b/g,
  /(?<=\w\.)[a-z]+(?=\()/g,
  /^\s+([a-z]+)(?=\??[(:])/gm,
  /\b[a-z]+[A-Z]\w*\b|\b[A-Z][a-z]+[A-Z]\w*\b/g,
]

/** In the examples, their tests and a benchmark, a place is a record of the atlas. */
const isAboutPlaces = (path: string): boolean =>
  /^(?:examples|bench\/queries|docs\/guides|packages\/server\/tests\/examples)\//.test(path)

/** `settled` is a public method of the module `plinth/testing`. */
const isAboutTesting = (path: string): boolean => path.includes('/testing/') || path.startsWith('examples/')

/** Documents that are not part of the repository. */
const citation = /\b(?:SPEC|CONTRACT|DESIGN|HOUSE|ATTACKS|REALTIME|MODELS)(?:'s)?\b(?![-_]\w|\.\w|'?\])/g
const citationRemedy = 'cite a rule of docs/rules.md, or say it here: a clone does not contain that document'

/** The list itself and its tests name what they refuse. */
const isList = (path: string): boolean => /(?:^|\/)scripts\/checks\/|\/(?:retired-words|tidy)\.test\.ts$/.test(path)
const isText = (path: string): boolean => isSource(path) || path.endsWith('.md')

const wordsOf = (name: string): string[] =>
  name
    .replace(/([a-z\d])([A-Z])/g, '$1 $2')
    .toLowerCase()
    .split(/[^a-z]+/)

function identifierMatch(name: string, path: string): Omit<RetiredWord, 'path' | 'line'> | null {
  if (allowedIdentifier.test(name)) return null
  const isAllowed = (word: string): boolean =>
    (/^places?$/.test(word) && isAboutPlaces(path)) || (name === 'settled' && isAboutTesting(path))
  const word = wordsOf(name).find((part) => Object.hasOwn(identifierWords, part) && !isAllowed(part))
  return word === undefined ? null : { found: name, remedy: `name it after ${identifierWords[word]}` }
}

/** The number of the line at an offset, from 1. */
const lineAt = (text: string, offset: number): number => text.slice(0, offset).split('\n').length

/** Every match in one file. */
function wordsIn(path: string, text: string): RetiredWord[] {
  const matches: RetiredWord[] = []
  const add = (index: number, match: Omit<RetiredWord, 'path' | 'line'>): void => {
    matches.push({ path, line: lineAt(text, index), ...match })
  }
  for (const { pattern, remedy } of prose)
    for (const match of text.matchAll(pattern)) add(match.index, { found: match[0], remedy })
  for (const match of text.matchAll(citation)) add(match.index, { found: match[0], remedy: citationRemedy })
  if (!isSource(path)) return matches
  for (const pattern of identifiers)
    for (const match of text.matchAll(pattern)) {
      const found = identifierMatch(match[1] ?? match[0], path)
      if (found !== null) add(match.index, found)
    }
  const fileMatch = identifierMatch(basename(path), path)
  if (fileMatch !== null) matches.push({ path, line: 0, ...fileMatch })
  return matches
}

/** Every match in the repository, of code and documents, in whichever folder. */
export const findRetiredWords = (repository: Repository): RetiredWord[] =>
  [...repository].flatMap(([path, text]) => (isText(path) && !isList(path) ? wordsIn(path, text) : []))

/** Every match as an error message. */
export const checkRetiredWords = (repository: Repository): string[] =>
  findRetiredWords(repository).map(
    ({ path, line, found, remedy }) => `${path}:${line}: "${found}" is a retired word; ${remedy}`,
  )

function report(repository: Repository, folder: string | undefined): void {
  const matches = findRetiredWords(repository)
  if (folder !== undefined) {
    for (const { path, line, found, remedy } of matches)
      if (path === folder || path.startsWith(`${folder}/`)) console.log(`${path}:${line}: "${found}"; ${remedy}`)
    return
  }
  const counts = new Map<string, number>()
  for (const { path } of matches) counts.set(dirname(path), (counts.get(dirname(path)) ?? 0) + 1)
  for (const [name, count] of [...counts].sort(([a], [b]) => (a < b ? -1 : 1)))
    console.log(`${String(count).padStart(5)}  ${name}`)
  console.log(`${String(matches.length).padStart(5)}  in all`)
}

if (import.meta.main) report(readRepository(fileURLToPath(new URL('../..', import.meta.url))), process.argv[2])
