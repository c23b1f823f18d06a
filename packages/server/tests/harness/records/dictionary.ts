/** The dictionary of a table that corrects typos, as it is stored, and what a search for a word reads of it. */
import { Database } from 'bun:sqlite'
import { join } from 'node:path'
import pg from 'pg'
import { entriesNear, isInDictionary } from '../../../src/engines/term-index/word-entries.ts'
import { typosAllowed } from '../../../src/features/records/search/typos.ts'
import type { TestServer } from '../server.ts'

type Rows = readonly Record<string, string>[]

/** Runs a query with the prefix of a namespace's tables. */
async function read(server: TestServer, namespace: string, queryOf: (prefix: string) => string): Promise<Rows> {
  const { databaseUrl, dataFolder } = server.settings()
  if (databaseUrl === null) {
    using database = new Database(join(dataFolder, 'databases', `${namespace}.sqlite`), { readonly: true })
    return database.query<Record<string, string>, []>(queryOf('')).all()
  }
  const client = new pg.Client({ connectionString: databaseUrl })
  await client.connect()
  try {
    return (await client.query(queryOf(`"${namespace}".`))).rows
  } finally {
    await client.end()
  }
}

export interface Dictionary {
  readonly words: readonly string[]
  /** Words of the records: all of them must be in the dictionary. */
  readonly used: readonly string[]
  /** The entries that a search for a word looks up, and the words that it reads under them. */
  visited(word: string): { readonly entries: number; readonly words: readonly string[] }
}

export async function readDictionary(server: TestServer, namespace: string, table: string): Promise<Dictionary> {
  const rows = await read(server, namespace, (prefix) => `SELECT entry, word FROM ${prefix}"_words_${table}"`)
  const terms = await read(server, namespace, (prefix) => `SELECT DISTINCT term FROM ${prefix}"_terms_${table}"`)
  return {
    words: [...new Set(rows.map(({ word = '' }) => word))].sort(),
    used: terms
      .map(({ term = '' }) => term)
      .filter(isInDictionary)
      .sort(),
    visited(word) {
      const points = Array.from(word)
      const near = entriesNear(points, typosAllowed(word, points.length) as 1 | 2)
      const found = rows.filter(({ entry = '' }) => near.has(entry)).map((row) => row.word ?? '')
      return { entries: near.size, words: found.sort() }
    },
  }
}
