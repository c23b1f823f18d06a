/**
 * Starts the server of plinth.config.ts, imports the notes on the first start, and serves the page and its search
 * endpoint on another port. Only that endpoint has the service key. Prints the URLs.
 *
 * node scripts/run.mjs examples/notes-search/start.ts [--port 4600] [--page-port 4601] [--data <folder>]
 */
import { runPageExample } from '../page-example.ts'
import { createEmbedding } from './embedding.ts'
import { fill, textOf } from './fill.ts'
import { readNotes } from './notes.ts'
import { connect } from './plinth.ts'
import { createSearch, type Kind, type Search } from './search.ts'

const queryCharsMax = 200
const kinds: ReadonlyMap<string, Kind> = new Map([
  ['', null],
  ['thing', 'thing'],
  ['food', 'food'],
])

/** `GET /search?q=…&kind=…`, the only public endpoint. Internal errors are logged, not returned. */
async function handleSearch(request: Request, search: Search): Promise<Response> {
  const { searchParams } = new URL(request.url)
  const query = (searchParams.get('q') ?? '').trim()
  const kind = kinds.get(searchParams.get('kind') ?? '')
  if (query === '' || query.length > queryCharsMax || kind === undefined)
    return Response.json({ message: `q: 1 to ${queryCharsMax} characters; kind: thing, food or none` }, { status: 400 })
  try {
    return Response.json(await search(query, kind))
  } catch (error) {
    console.error(error)
    return Response.json({ message: 'The search is not available' }, { status: 502 })
  }
}

const notes = readNotes()

await runPageExample({
  folder: import.meta.dirname,
  ports: [4600, 4601],
  files: ['index.html', 'search.css', 'search.ts'],
  async openRoutes({ apiUrl, settings }) {
    const embedding = createEmbedding(notes.map(textOf))
    const plinth = connect(apiUrl, settings.serviceKey)
    await fill(plinth, notes, embedding)
    const search = createSearch(plinth, embedding)
    return { '/search': (request) => handleSearch(request, search) }
  },
  introduce: ({ apiUrl, pageUrl, settings }) => ({
    environment: {
      PAGE: pageUrl,
      API: `${apiUrl}/api`,
      KEY: `X-Platform-Service-Key: ${settings.serviceKey}`,
      JSON: 'Content-Type: application/json',
    },
    welcome: (demoPath) => `\
  The search      ${pageUrl}/
  For a shell     ${demoPath}

${notes.length.toLocaleString('en-US')} notes. examples/notes-search/README.md describes the next steps.`,
  }),
})
