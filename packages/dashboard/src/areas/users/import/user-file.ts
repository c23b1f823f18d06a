/** Reads users from a file for an import: a JSON list, an object with `users`, or CSV with a header. */
import { CsvReader, type CsvRow } from '../../../../../server/src/base/text/csv.ts'

/** One user as the server takes it; what is wrong with it the server says. */
export type UserEntry = Readonly<Record<string, unknown>>

const fileBytesMax = 20_000_000
const rowCharsMax = 1_000_000

/** Columns that are no text. */
const jsonColumns: ReadonlySet<string> = new Set(['verified', 'metadata', 'appMetadata'])

/** Throws an error that names what is wrong with the file. */
export async function readUsers(file: File): Promise<readonly UserEntry[]> {
  if (file.size > fileBytesMax) throw new Error('The file is larger than 20 MB. Split it.')
  const text = (await file.text()).replace(/^\ufeff/, '')
  const users = /^\s*[[{]/.test(text) ? usersOfJson(text) : usersOfCsv(text)
  if (users.length === 0) throw new Error('The file has no users.')
  return users
}

function usersOfJson(text: string): readonly UserEntry[] {
  const parsed: unknown = JSON.parse(text)
  const list: unknown = Array.isArray(parsed) ? parsed : (parsed as { users?: unknown }).users
  if (!Array.isArray(list)) throw new Error('The file must be a list of users, or an object with the list "users".')
  return list
}

function usersOfCsv(text: string): readonly UserEntry[] {
  const reader = new CsvReader({ rowCharsMax })
  const last = (rows: readonly CsvRow[]): readonly CsvRow[] => {
    const row = reader.end()
    return row ? [...rows, row] : rows
  }
  const [header, ...rows] = last([...reader.read(text)])
  const names = header?.cells.map((cell) => cell.text.trim()) ?? []
  if (!names.includes('email')) throw new Error('The first line must name the columns, one of them "email".')
  return rows.map(({ cells, line }) => {
    if (cells.length > names.length) throw new Error(`Line ${line} has more cells than the header.`)
    return Object.fromEntries(
      names.flatMap((name, at) => {
        const cell = cells[at]
        return cell === undefined || cell.text === '' ? [] : [[name, cellValue(name, cell.text)]]
      }),
    )
  })
}

/** What is no JSON stays text, which the server refuses for this user alone. */
function cellValue(name: string, text: string): unknown {
  if (!jsonColumns.has(name)) return text
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}
